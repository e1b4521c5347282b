/** Units of systemd: what its own tool says of them, and what is written where. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import {
  folderProblem,
  installService,
  serviceRoles,
  unitName,
  unitText,
  type ServiceRole,
} from '../../../control/operations/admin/service-unit.ts'
import { allocatorSettings } from '../../../shared/running/memory.ts'
import { findProgram } from '../../support/programs.ts'

const ROOT = path.resolve(import.meta.dirname, '../../..')
const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-units-'))
afterAll(() => rmSync(folder, { recursive: true }))

const settings = (role: ServiceRole) => ({
  role,
  user: 'dropway',
  folder: ROOT,
  node: process.execPath,
  environmentFile: path.join(folder, 'etc', 'dropway.env'),
})

test.each(serviceRoles)('the unit of role %s exposes no more than 2.5', (role) => {
  const file = path.join(folder, unitName(role))
  writeFileSync(file, unitText(settings(role)))
  const program = findProgram('systemd-analyze') ?? 'systemd-analyze'
  // It ends with 1 above the threshold, which is in tenths.
  const said = execFileSync(program, ['security', '--offline=yes', '--threshold=25', '--no-pager', file], {
    encoding: 'utf8',
  })
  expect(said).toMatch(/Overall exposure level for .*: [012]\.\d/)
})

test.each(serviceRoles)('the unit of role %s starts a program that is there, and holds no setting twice', (role) => {
  const text = unitText(settings(role))
  const [, program = ''] = /^ExecStart=\S+ (\S+)$/m.exec(text) ?? []
  expect(statSync(path.join(ROOT, program)).isFile()).toBe(true)
  const names = [...text.matchAll(/^([A-Z]\w+)=/gm)].map(([, name]) => name!)
  expect(names.filter((name, index) => name !== 'SystemCallFilter' && names.indexOf(name) !== index)).toEqual([])
  expect(text.includes('CAP_NET_BIND_SERVICE')).toBe(role !== 'control')
  const told = role === 'control' ? Object.entries(allocatorSettings(role)) : []
  const environment = [['DATA_DIR', '/var/lib/dropway'], ...told].map(([name, value]) => `${name}=${value}`)
  expect(text).toContain(`\nEnvironment=${environment.join(' ')}\n`)
})

test.each(serviceRoles)('the unit of role %s is started again however often its start fails', (role) => {
  const [, section = ''] = /^\[Unit\]\n(.*?)^\[/ms.exec(unitText(settings(role))) ?? []
  expect(section).toMatch(/^StartLimitIntervalSec=0$/m)
})

test.each(serviceRoles)('the unit of role %s stays failed where only the operator can help', (role) => {
  expect(unitText(settings(role))).toMatch(/^RestartPreventExitStatus=78$/m)
})

test('a unit and a file of settings are written; settings that are there stay, and only their owner reads them', async () => {
  const directory = path.join(folder, 'systemd')
  const first = await installService(settings('edge'), directory)
  expect(first.written).toEqual([path.join(directory, 'dropway-edge.service'), settings('edge').environmentFile])
  expect(first.next.join('\n')).toMatch(
    /useradd --system.*\n.*\nsystemctl daemon-reload && systemctl enable --now dropway-edge\.service/,
  )
  expect(statSync(settings('edge').environmentFile).mode & 0o777).toBe(0o600)
  writeFileSync(settings('edge').environmentFile, 'BASE_URL=https://mine.example\n')
  expect((await installService(settings('control'), directory)).written).toEqual([
    path.join(directory, 'dropway-control.service'),
  ])
  expect(readFileSync(settings('edge').environmentFile, 'utf8')).toContain('mine.example')
})

test.each([
  ['/opt/dropway', undefined],
  ['/srv/a/dropway', undefined],
  ['/home/me/dropway', /elsewhere, for instance into \/opt\/dropway/],
  ['/root/dropway', /elsewhere/],
  ['/tmp/x', /elsewhere/],
  ['/opt/my dropway', /plain name/],
] as const)('a release in %s', (place, words) => {
  if (words === undefined) expect(folderProblem(place)).toBeUndefined()
  else expect(folderProblem(place)).toMatch(words)
})
