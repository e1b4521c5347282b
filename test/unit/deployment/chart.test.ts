/** The Helm chart's values: what its schema lets in, and what it refuses before anything is installed. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const ROOT = path.join(import.meta.dirname, '../../../')
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8')
const isValid = new Ajv({ strict: true, allErrors: true }).compile(JSON.parse(read('.docker/chart/values.schema.json')))
const defaults = parse(read('.docker/chart/values.yaml')) as Record<string, object>
const own = { baseUrl: 'https://pages.example.test', sitesDomain: 'sites.example.test' }

test('the defaults want two answers from the operator, and no more', () => {
  expect(isValid(defaults)).toBe(false)
  expect(isValid.errors?.map(({ instancePath }) => instancePath)).toEqual(['/baseUrl', '/sitesDomain'])
  expect(isValid({ ...defaults, ...own })).toBe(true)
})

test.each<[what: string, values: object, place: string]>([
  ['a value that no template reads', { replicas: 3 }, ''],
  ['no control', { control: { ...defaults['control'], replicas: 0 } }, '/control/replicas'],
  ['an address without TLS', { baseUrl: 'http://pages.example.test' }, '/baseUrl'],
  ['a number where a setting is text', { settings: { UPLOADS_PER_HOUR: 10 } }, '/settings/UPLOADS_PER_HOUR'],
  ['a setting in small letters', { settings: { service_name: 'Acme' } }, '/settings'],
  ['a secret for all to read', { settings: { SECRET_KEY: 'x'.repeat(32) } }, '/settings'],
  [
    'a secret among those of a plane',
    { edge: { ...defaults['edge'], settings: { REDIS_URL: 'redis://x' } } },
    '/edge/settings',
  ],
  ['a reference without a key', { secretSettings: { SMTP_URL: { name: 'mail' } } }, '/secretSettings/SMTP_URL'],
  ['edges that trust everyone', { control: { ...defaults['control'], trustedProxies: [] } }, '/control/trustedProxies'],
])('%s is refused', (_, values, place) => {
  expect(isValid({ ...defaults, ...own, ...values })).toBe(false)
  expect(isValid.errors?.map(({ instancePath }) => instancePath)).toContain(place)
})

test('a control that migrates for hours is not killed by its startup probe; an edge that hangs is', () => {
  const [, period = ''] =
    /startupProbe:\n.*\n  periodSeconds: (\d+)\n/.exec(read('.docker/chart/templates/_shared.tpl')) ?? []
  const seconds = ['control', 'edge'].map((plane) => {
    const [, tries = ''] = /"startTries" (\d+)/.exec(read(`.docker/chart/templates/${plane}.yaml`)) ?? []
    return Number(period) * Number(tries)
  })
  expect(seconds).toEqual([24 * 60 * 60, 120])
})

test('the chart is of this version', () => {
  const { version, appVersion } = parse(read('.docker/chart/Chart.yaml')) as { version: string; appVersion: string }
  const ours = (JSON.parse(read('package.json')) as { version: string }).version
  expect([version, appVersion]).toEqual([ours, ours])
})
