/** The replica's layout of a route record: whatever is published comes out of the file as it went in. */
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { open } from 'lmdb'
import { openReplica } from '../../../edge/store/replica/replica.ts'
import type { RouteRecord, SiteRoute } from '../../../shared/contracts/route-record.ts'
import { START_OF_LOG } from '../../../shared/redis/stream.ts'

let dir: string
beforeEach(() => (dir = mkdtempSync(path.join(os.tmpdir(), 'dropway-replica-'))))
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const hash = (digit: string): string => `${digit}1`.repeat(32)

const site: SiteRoute = {
  v: 1,
  kind: 'site',
  host: 'a.example',
  revision: 7,
  site_id: 'st_1',
  state: 'live',
  manifest: hash('a'),
  version_number: 2,
  versions: [
    [2, hash('a')],
    [1, hash('b')],
  ],
  expires_at: null,
  password: null,
  spa_fallback: false,
  badge: true,
  analytics: null,
}

const records: readonly (readonly [string, RouteRecord])[] = [
  ['a site', site],
  ['never published', { ...site, state: 'reserved', manifest: null, version_number: 0, versions: [] }],
  ['deleted while its versions are kept', { ...site, state: 'gone', manifest: null }],
  ['a live version that is not retained', { ...site, manifest: hash('c'), version_number: 3 }],
  [
    'two versions with the same bytes',
    {
      ...site,
      versions: [
        [2, hash('a')],
        [1, hash('a')],
      ],
    },
  ],
  [
    'every setting',
    {
      ...site,
      revision: 2 ** 40,
      state: 'paused',
      expires_at: 1_900_000_000_123,
      password: { hash: '$scrypt$ln=15$abc', generation: 3 },
      spa_fallback: true,
      badge: false,
      analytics: { plausible: { domain: 'a.example' }, consent_banner: 'auto' },
      review: { generation: 3, ended: [['gl_1', 1_900_000_000_123]] },
    },
  ],
  ['an alias', { v: 1, kind: 'alias', host: 'www.a.example', revision: 1, to: 'a.example' }],
  ['a redirect', { v: 1, kind: 'redirect', host: 'old.example', revision: 1, to: 'a.example' }],
  ['nothing', { v: 1, kind: 'none', host: 'free.example', revision: 9 }],
]

test.each(records)('%s', async (_, record) => {
  const replica = openReplica(dir, { readOnly: false })
  await replica.apply([{ kind: 'route', name: record.host, record }], {})
  const { versions = [], ...served } = { versions: undefined, ...record }
  expect(replica.route(record.host)).toEqual(served)
  for (const [number, manifest] of versions) expect(replica.manifestOf(record.host, number)).toBe(manifest)
  for (const number of [0, 99]) expect(replica.manifestOf(record.host, number)).toBeUndefined()
  await replica.close()
})

test('an older revision never replaces a newer one', async () => {
  const replica = openReplica(dir, { readOnly: false })
  const entry = (revision: number, badge: boolean) =>
    ({ kind: 'route', name: site.host, record: { ...site, revision, badge } }) as const
  const name = { kind: 'route', name: site.host }
  expect(await replica.apply([entry(7, true)], {})).toEqual({ changes: [name], outdated: [] })
  expect(await replica.apply([entry(6, false), entry(7, false)], {})).toEqual({
    changes: [],
    outdated: [{ ...name, revision: 6, reason: 'revision 7 is held here, which is newer' }],
  })
  expect(replica.route(site.host)).toMatchObject({ revision: 7, badge: true })
  await replica.close()
})

test('a file of another layout is filled anew, certificates stay', async () => {
  const first = openReplica(dir, { readOnly: false })
  await first.apply([{ kind: 'route', name: site.host, record: site }], {})
  await first.apply([{ kind: 'certificate', name: 'a.example', value: 'sealed' }], {})
  await first.completeSnapshot({ epoch: 'one', position: '5-0' }, [])
  await first.close()
  const file = open({ path: dir, maxDbs: 8 })
  await file.openDB('meta', { encoding: 'string' }).put('format', 'another')
  await file.close()

  const replica = openReplica(dir, { readOnly: false })
  expect(replica.route(site.host)).toBeUndefined()
  expect(replica.snapshotEpoch()).toBeUndefined()
  expect(replica.progress()).toEqual({ epoch: '', position: START_OF_LOG })
  expect(replica.value('certificate', 'a.example')).toBe('sealed')
  await replica.close()
})
