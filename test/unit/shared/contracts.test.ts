/** What the planes tell each other survives the way, whatever it holds; what is of another shape or format is refused. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fromStored, manifestOf, revisionOf, toStored } from '../../../edge/store/replica/stored-route.ts'
import {
  isShortenedPreview,
  parseAuthority,
  parsePreviewHost,
  previewHost,
  readPreviewLabel,
  siteHost,
  slugProblem,
} from '../../../shared/http/hosts.ts'
import { keys } from '../../../shared/redis/keys.ts'
import {
  decodeManifest,
  encodeManifest,
  MANIFEST_FORMAT,
  manifestSchema,
  type Manifest,
} from '../../../shared/contracts/manifest.ts'
import {
  decodeRouteRecord,
  encodeRouteRecord,
  ROUTE_RECORD_FORMAT,
  siteStates,
  type RouteRecord,
} from '../../../shared/contracts/route-record.ts'
import {
  compareStreamIds,
  decodeStreamMessage,
  encodeStreamMessage,
  nextStreamId,
  STREAM_FORMAT,
} from '../../../shared/redis/stream.ts'

const hash = fc.stringMatching(/^[0-9a-f]{64}$/)
const label = fc.stringMatching(/^[a-z0-9](?:[a-z0-9-]{0,10}[a-z0-9])?$/)
const host = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => labels.join('.'))
const base = { v: fc.constant(ROUTE_RECORD_FORMAT), host, revision: fc.integer({ min: 1 }) } as const

const siteRecord = fc.record({
  ...base,
  kind: fc.constant('site' as const),
  site_id: fc.string({ minLength: 1 }),
  state: fc.constantFrom(...siteStates),
  manifest: fc.option(hash),
  version_number: fc.nat(),
  versions: fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 1_000_000 }), hash), { selector: ([number]) => number }),
  expires_at: fc.option(fc.maxSafeNat()),
  password: fc.option(fc.record({ hash: fc.string(), generation: fc.nat() })),
  spa_fallback: fc.boolean(),
  badge: fc.boolean(),
  analytics: fc.constantFrom(null, { plausible: { domain: 'example.com' }, consent_banner: 'auto' as const }),
})

/** A live manifest is mostly one of the retained ones, as it is in earnest. */
const liveSite = siteRecord.map((site) => ({ ...site, manifest: site.versions[0]?.[1] ?? site.manifest }))
const record: fc.Arbitrary<RouteRecord> = fc.oneof(
  siteRecord as fc.Arbitrary<RouteRecord>,
  liveSite as fc.Arbitrary<RouteRecord>,
  fc.record({ ...base, kind: fc.constantFrom('alias' as const, 'redirect' as const), to: host }),
  fc.record({ ...base, kind: fc.constant('none' as const) }),
)

describe('route records', () => {
  test('survive encoding', () => {
    fc.assert(
      fc.property(record, (route) => {
        expect(decodeRouteRecord(encodeRouteRecord(route))).toEqual(route)
      }),
    )
  })

  test('survive the replica, which keeps them packed', () => {
    fc.assert(
      fc.property(record, (route) => {
        const { versions = [], ...served } = { versions: undefined, ...route }
        const stored = toStored(route)
        expect(fromStored(route.host, stored)).toEqual(served)
        expect(revisionOf(stored)).toBe(route.revision)
        for (const [number, manifest] of versions) expect(manifestOf(stored, number)).toBe(manifest)
      }),
    )
  })

  test('of another format, with a field too many or too few, are refused', () => {
    fc.assert(
      fc.property(record, fc.integer(), fc.nat(), (route, format, pick) => {
        fc.pre(format !== ROUTE_RECORD_FORMAT)
        const fields = Object.keys(route)
        const { [fields[pick % fields.length]!]: _, ...fewer } = route as unknown as Record<string, unknown>
        for (const broken of [{ ...route, v: format }, { ...route, more: 1 }, fewer])
          expect(() => decodeRouteRecord(JSON.stringify(broken))).toThrow()
      }),
    )
  })

  test('never come from arbitrary JSON', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(() => decodeRouteRecord(text)).toThrow()
      }),
    )
  })
})

describe('messages on the change log', () => {
  const message = fc.record({
    kind: fc.constantFrom('route' as const, 'certificate' as const, 'domain' as const, 'challenge' as const),
    name: fc.string(),
    value: fc.string(),
  })

  test('survive the field list of a stream entry', () => {
    fc.assert(
      fc.property(message, (sent) => {
        expect(decodeStreamMessage(encodeStreamMessage(sent))).toEqual({ v: STREAM_FORMAT, ...sent })
      }),
    )
  })

  test('of another format or kind are refused, and so are arbitrary fields', () => {
    fc.assert(
      fc.property(message, fc.integer(), fc.array(fc.string()), (sent, format, fields) => {
        fc.pre(format !== STREAM_FORMAT)
        const [, , ...rest] = encodeStreamMessage(sent)
        expect(() => decodeStreamMessage(['v', String(format), ...rest])).toThrow()
        expect(() => decodeStreamMessage(['v', String(STREAM_FORMAT), 'kind', `x${sent.kind}`])).toThrow()
        expect(() => decodeStreamMessage(fields)).toThrow()
      }),
    )
  })

  test('have ids that are ordered, and each has a next one', () => {
    const id = fc.tuple(fc.maxSafeNat(), fc.nat()).map(([ms, sequence]) => `${ms}-${sequence}`)
    fc.assert(
      fc.property(id, id, (a, b) => {
        expect(Math.sign(compareStreamIds(a, b))).toBe(-Math.sign(compareStreamIds(b, a)) + 0)
        expect(compareStreamIds(a, a)).toBe(0)
        expect(compareStreamIds(a, nextStreamId(a))).toBeLessThan(0)
      }),
    )
  })
})

test('a manifest of another format is refused', () => {
  const manifest = { v: MANIFEST_FORMAT, files: [], redirects: [], headers: [], unserved: [] }
  expect(decodeManifest(Buffer.from(JSON.stringify(manifest)))).toEqual(manifest)
  fc.assert(
    fc.property(fc.integer(), (format) => {
      fc.pre(format !== MANIFEST_FORMAT)
      expect(() => decodeManifest(Buffer.from(JSON.stringify({ ...manifest, v: format })))).toThrow()
    }),
  )
})

test('files of a manifest are taken, refused and read as the schema would, whichever way they are checked', () => {
  const rarely = (value: unknown) => fc.oneof({ weight: 19, arbitrary: fc.constant(undefined) }, fc.constant(value))
  const hash = fc.oneof(
    { weight: 19, arbitrary: fc.constant('0f'.repeat(32)) },
    fc.constantFrom('0F'.repeat(32), 'a'.repeat(63), `${'a'.repeat(64)}\n`),
  )
  const count = fc.oneof({ weight: 19, arbitrary: fc.nat() }, fc.constantFrom(-1, 1.5, 2 ** 60, null, '1'))
  const bytes = fc.record({ hash, size: count, more: rarely(1) }, { requiredKeys: ['hash', 'size'] })
  const policy = { policy: 'x', start: 1, end: 2 }
  const file = fc.record(
    {
      hash,
      size: count,
      type: fc.constantFrom('text/html', 'image/png', 'text/css', 'x', 'y', 1),
      immutable: fc.oneof({ weight: 9, arbitrary: fc.boolean() }, fc.constantFrom('yes', null)),
      encodings: fc.oneof(
        { weight: 9, arbitrary: fc.record({ br: bytes, gzip: bytes }, { requiredKeys: [] }) },
        fc.constantFrom([], null, { deflate: { hash: '0f'.repeat(32), size: 1 } }),
      ),
      injection: fc.record(
        {
          head: count,
          body: count,
          csp: fc.constantFrom(policy, [policy], [], undefined, undefined, 1),
          more: rarely(1),
        },
        { requiredKeys: ['head', 'body'] },
      ),
      source: fc.option(fc.record({ path: fc.string(), hash, size: count }), { nil: undefined }),
      more: rarely(1),
    },
    { requiredKeys: ['hash', 'size', 'type'] },
  )
  const entry = fc.oneof(
    { weight: 9, arbitrary: fc.tuple(fc.string(), file) },
    fc.constantFrom(['a'], [1, 2], 'a', null),
  )
  const kept = fc.record(
    {
      file,
      since: count,
      version: fc.oneof({ weight: 19, arbitrary: fc.nat() }, fc.constantFrom(0, -1, '1')),
      headers: count,
      more: rarely(1),
    },
    { requiredKeys: ['file', 'since', 'version'] },
  )
  const keptEntry = fc.oneof(
    { weight: 9, arbitrary: fc.tuple(fc.string(), kept) },
    fc.constantFrom(['a'], [1, 2], 'a', null),
  )
  const keptFiles = fc.oneof(
    { weight: 9, arbitrary: fc.record({ files: fc.array(keptEntry, { maxLength: 2 }), headers: fc.constant([]) }) },
    fc.constantFrom(null, [], { files: null, headers: [] }, { files: [] }, 1),
  )
  const read = (work: () => unknown): unknown => {
    try {
      return work()
    } catch {
      return 'refused'
    }
  }
  const taken = { files: 0, kept: 0 }
  const both = fc.record({ files: fc.array(entry, { maxLength: 2 }), kept: keptFiles }, { requiredKeys: ['files'] })
  fc.assert(
    fc.property(both, (lists) => {
      const text = JSON.stringify({ v: MANIFEST_FORMAT, redirects: [], headers: [], unserved: [], ...lists })
      const decoded = read(() => decodeManifest(Buffer.from(text)))
      expect(JSON.stringify(decoded)).toBe(JSON.stringify(read(() => manifestSchema.parse(JSON.parse(text)))))
      if (decoded === 'refused') return
      if (lists.files.length > 0) taken.files++
      if ((decoded as Manifest).kept?.files.length) taken.kept++
    }),
    { numRuns: 4000 },
  )
  expect(taken.files).toBeGreaterThan(20)
  expect(taken.kept).toBeGreaterThan(20)
})

test('a manifest is written in parts that are its JSON, however many files it has', () => {
  const file = { hash: 'a'.repeat(64), size: 1, type: 'text/plain' }
  for (const count of [0, 1, 1000, 1001, 2500]) {
    const files = Array.from({ length: count }, (_, index): [string, typeof file] => [`é/${index}`, file])
    const manifest = { v: MANIFEST_FORMAT, files, redirects: [], headers: [], unserved: [] } as const
    for (const one of [manifest, { ...manifest, kept: { files: [], headers: [] } }])
      expect(encodeManifest(one as never).toString()).toBe(JSON.stringify(one))
  }
})

test('a manifest written when pages had one policy is read as one with a list', () => {
  const page = (csp: unknown) => ({
    v: MANIFEST_FORMAT,
    files: [['index.html', { hash: 'a'.repeat(64), size: 1, type: 'text/html', injection: { head: 0, body: 0, csp } }]],
    redirects: [],
    headers: [],
    unserved: [],
  })
  const policy = { policy: "default-src 'self'", start: 1, end: 5 }
  expect(decodeManifest(Buffer.from(JSON.stringify(page(policy))))).toEqual(page([policy]))
})

test('every key has the hash tag, so that one transaction may touch them all on a cluster', () => {
  const all = Object.values(keys).map((key) => (typeof key === 'function' ? key('name') : key))
  expect(new Set(all).size).toBe(all.length)
  for (const key of all) expect(key).toMatch(/^\{dropway\}:/)
})

describe('hosts', () => {
  test('an authority is read whatever its case, port and final dot', () => {
    fc.assert(
      fc.property(host, fc.boolean(), fc.option(fc.integer({ min: 0, max: 65535 })), (name, hasDot, port) => {
        const authority = `${name.toUpperCase()}${hasDot ? '.' : ''}${port === null ? '' : `:${port}`}`
        expect(parseAuthority(authority)).toBe(name)
      }),
    )
  })

  test('whatever is sent, the result is a plain lower-case name or nothing', () => {
    fc.assert(
      fc.property(fc.string(), (authority) => {
        expect(parseAuthority(authority) ?? 'nothing').toMatch(/^[a-z0-9.-]+$/)
      }),
    )
  })

  test('a preview address leads back to its version and site', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999_999_999 }), label, (number, slug) => {
        fc.pre(slugProblem(slug) === undefined && !isShortenedPreview(String(number), slug))
        const address = previewHost(String(number), { id: 'st_1', slug }, 'example.com')
        expect(parsePreviewHost(address)).toEqual({ label: String(number), siteHost: siteHost(slug, 'example.com') })
        expect(readPreviewLabel(String(number))).toEqual({ kind: 'number', versionNumber: number })
        expect(parsePreviewHost(siteHost(slug, 'example.com'))).toBeUndefined()
      }),
    )
  })
})
