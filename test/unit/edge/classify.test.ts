/** What an address stands for where a drop and a preview of another have the same. */
import { expect, test } from 'vitest'
import type { Exchange, ServedRoute } from '../../../edge/context.ts'
import { createClassify } from '../../../edge/gate/classify.ts'
import type { Routes } from '../../../edge/store/routes.ts'
import { routeOf } from '../../support/manifests.ts'

const DOMAIN = 'dropway.test'
/** From before slugs with two hyphens were refused. */
const SQUATTED = `pr-7--demo.${DOMAIN}`
const squatter = routeOf({ host: SQUATTED, site_id: 'st_squatter' })

function seenAt(host: string, records: readonly ServedRoute[]): string {
  const byHost = new Map(records.map((record) => [record.host, record]))
  const routes: Partial<Routes> = {
    get: (name) => byHost.get(name),
    isComplete: () => true,
    manifestOf: (_, version) => String(version).repeat(64),
  }
  const classify = createClassify({
    routes: routes as Routes,
    serviceHost: DOMAIN,
    sitesDomain: DOMAIN,
    secrets: { sign: () => 'signature' },
  })
  const exchange = { authority: host, target: '/', named() {}, countRequest: () => true, certificateCovers: () => true }
  const destination = classify(exchange as unknown as Exchange)
  return destination.kind === 'site'
    ? `${destination.drop.route.site_id} ${destination.drop.previewName ?? 'itself'}`
    : destination.kind
}

test.each([
  ['the preview of that name', { names: [['pr-7', 2]] }, 'st_demo pr-7'],
  ['the preview too while its drop has no live version', { names: [['pr-7', 2]], state: 'reserved' }, 'st_demo pr-7'],
  ['the drop while there is none', { names: [['pr-8', 2]] }, 'st_squatter itself'],
  ['the drop while previews are closed', { names: [['pr-7', 2]], previews: 'off' }, 'st_squatter itself'],
] as const)('an address with two hyphens in a row shows %s', (_, changes, seen) => {
  const demo = routeOf({ ...changes, names: changes.names.map(([name, number]) => [name, number]) })
  expect(seenAt(SQUATTED, [squatter, demo])).toBe(seen)
})

test('without such a drop it is the preview, or nothing', () => {
  expect(seenAt(SQUATTED, [routeOf({ names: [['pr-7', 2]] })])).toBe('st_demo pr-7')
  expect(seenAt(SQUATTED, [routeOf()])).toBe('unknown')
})
