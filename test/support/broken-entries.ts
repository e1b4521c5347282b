/**
 * News for edges, valid and broken: records, manifests, certificates, stream entries and blobs, made from good ones by
 * mutation. The same seed makes the same news.
 */
import { openLocalCa } from '../../certs/local/local-ca.ts'
import { sealBundle } from '../../shared/certificates/bundle.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { encodeStreamMessage } from '../../shared/redis/stream.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { createRandom, type Random } from './random.ts'

export interface News {
  /** Fields of the stream entry. */
  readonly fields: readonly (string | Buffer)[]
  /** What stands in the snapshot beside it: [hash of the snapshot, name, value]. */
  readonly snapshot?: readonly ['routes' | 'certificates', string, string]
}

export interface NewsOptions {
  readonly seed: number
  readonly secretKey: string
  /** Where a certificate authority may be kept. */
  readonly dataDir: string
  /** Names that may break. */
  readonly hosts: readonly string[]
  /** Names that nothing may happen to; broken news may claim to be about them. */
  readonly others: readonly string[]
  /** A manifest that can be served. */
  readonly manifest: string
}

export interface NewsSource {
  next(): News
  /** The bytes of a manifest with something wrong about it. */
  brokenManifest(): Buffer
  /** Manifests that next() may name from now on. */
  addManifest(hash: string): void
}

/** Values that readers forget: of the wrong type, too large, or with a meaning of their own. */
const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  1e308,
  Number.MAX_SAFE_INTEGER + 2,
  '',
  ' ',
  'x'.repeat(300),
  '\u0000',
  '\ud800',
  '../../etc/passwd',
  '0'.repeat(64),
  'g'.repeat(64),
  [],
  [[]],
  {},
  { toString: 1 },
  ['__proto__'],
]
const ODD_KEYS = ['__proto__', 'constructor', 'toString', 'v', 'kind', '']
const MAX_MANIFESTS = 500
const LARGE_CHARS = 50_000

export function createNews({ seed, secretKey, dataDir, hosts, others, manifest }: NewsOptions): NewsSource {
  const random = createRandom(seed)
  const secrets = createSecrets(secretKey)
  const ca = openLocalCa(dataDir, systemClock)
  const certificates = hosts
    .slice(0, 20)
    .map((name) => ({ name, bundle: ca.issue([name]) }))
    .map(({ name, bundle }) => ({ name, bundle, sealed: sealBundle(secrets, name, bundle) }))
  const manifests = [manifest]
  /** Above everything that anyone else publishes to these hosts. */
  let revision = 1_000_000

  const goodManifest = {
    v: 1,
    files: [['index.html', { hash: manifest, size: 10, type: 'text/html', injection: { head: 0, body: 0 } }]],
    redirects: [{ from: '/a/*', to: '/b/:splat', status: 301, force: false, line: 1 }],
    headers: [{ from: '/*', set: [['x-a', 'b']], line: 1 }],
    unserved: [['_headers', { hash: manifest, size: 1 }]],
  }

  function record(): { name: string; value: object } {
    const name = random.pick(hosts)
    const base = { v: 1, host: name, revision: ++revision }
    switch (random.below(8)) {
      case 0:
        return { name, value: { ...base, kind: 'alias', to: random.pick([...hosts, name]) } }
      case 1:
        return { name, value: { ...base, kind: 'redirect', to: random.pick([...hosts, name]) } }
      case 2:
        return { name, value: { ...base, kind: 'none' } }
      default: {
        const hash = random.pick(manifests)
        return {
          name,
          value: {
            ...base,
            kind: 'site',
            site_id: `st_${name}`,
            state: random.pick(['live', 'live', 'live', 'reserved', 'gone', 'paused', 'expired']),
            manifest: hash,
            version_number: 1,
            versions: [[1, hash]],
            expires_at: null,
            password: random.chance(0.1) ? { hash: '$argon2id$broken', generation: 1 } : null,
            spa_fallback: random.chance(0.5),
            badge: random.chance(0.5),
            analytics: null,
          },
        }
      }
    }
  }

  function route(): News {
    const { name, value } = record()
    const text = random.chance(0.15) ? JSON.stringify(value) : broken(random, value)
    // Under the name of someone else it is no one's record.
    const claimed = random.chance(0.05) && text.includes(`"host":"${name}"`) ? random.pick(others) : name
    const isOwn = claimed === name
    return {
      fields: encodeStreamMessage({ kind: 'route', name: claimed, value: text }),
      ...(isOwn ? { snapshot: ['routes', name, text] as const } : {}),
    }
  }

  function certificate(): News {
    const { name, bundle, sealed } = random.pick(certificates)
    const wrong = { ...bundle, key: random.pick(certificates).bundle.key }
    const value = random.pick([
      () => sealed,
      () => mangled(random, sealed),
      () => sealBundle(secrets, random.pick(hosts), bundle),
      () => sealBundle(secrets, name, wrong),
      () => secrets.seal(broken(random, bundle), `certificate:${name}`),
      () => '',
    ])()
    const claimed = random.chance(0.1) && value !== '' && value !== sealed ? random.pick(others) : name
    return {
      fields: encodeStreamMessage({ kind: 'certificate', name: claimed, value }),
      ...(claimed === name && value !== '' ? { snapshot: ['certificates', name, value] as const } : {}),
    }
  }

  /** Not even the entry is one. */
  function entry(): News {
    const name = random.pick([...hosts, ...others, '', 'x'.repeat(600), '\u0000', random.pick(hosts).toUpperCase()])
    const good = encodeStreamMessage({ kind: 'route', name, value: 'x' })
    const fields: (string | Buffer)[] = random.pick([
      () => good.slice(2),
      () => ['v', '2', ...good.slice(2)],
      () => ['v', '1', 'kind', random.pick(['site', 'Route', '', '__proto__', 'toString']), ...good.slice(4)],
      () => ['a', 'b'],
      () => [...good, 'value', mangled(random, JSON.stringify(record().value))],
      () => ['v', '1', 'kind', 'route', 'name', Buffer.from([0xff, 0xfe, 0x00]), 'value', Buffer.from([0x80, 0x81])],
      () => encodeStreamMessage({ kind: 'domain', name: random.pick(hosts), value: broken(random, { wanted: false }) }),
      () =>
        encodeStreamMessage({ kind: 'challenge', name: mangled(random, 'token'), value: mangled(random, 'answer') }),
    ])()
    return { fields }
  }

  return {
    next() {
      const kind = random.next()
      if (kind < 0.75) return route()
      return kind < 0.85 ? certificate() : entry()
    },
    brokenManifest: () =>
      Buffer.from(random.chance(0.1) ? `${JSON.stringify(goodManifest)} ` : broken(random, goodManifest)),
    addManifest(hash) {
      if (manifests.length < MAX_MANIFESTS) manifests.push(hash)
      else manifests[1 + random.below(MAX_MANIFESTS - 1)] = hash
    },
  }
}

/** JSON of the value after a few changes, some of which leave it no JSON. */
function broken(random: Random, value: unknown): string {
  const copy = structuredClone(value)
  for (let count = random.between(1, 3); count > 0; count--) change(random, copy)
  const text = JSON.stringify(copy)
  return random.chance(0.3) ? mangled(random, text) : text
}

function change(random: Random, value: unknown): void {
  const holder = random.pick(holders(value))
  const key = random.pick([...Object.keys(holder), ...(random.chance(0.1) ? ODD_KEYS : [])]) ?? 'v'
  const slots = holder as Record<string, unknown>
  if (random.chance(0.25)) delete slots[key]
  else
    Object.defineProperty(slots, key, {
      value: structuredClone(random.pick(ODD_VALUES)),
      enumerable: true,
      configurable: true,
      writable: true,
    })
}

function holders(value: unknown): object[] {
  if (typeof value !== 'object' || value === null) return []
  return [value, ...Object.values(value).flatMap(holders)]
}

function mangled(random: Random, text: string): string {
  const at = random.below(text.length + 1)
  switch (random.below(6)) {
    case 0:
      return text.slice(0, at)
    case 1:
      return text.slice(at)
    case 2:
      return text.slice(0, at) + String.fromCharCode(random.below(0x250)) + text.slice(at + 1)
    case 3:
      return text.slice(0, at) + text + text.slice(at)
    case 4:
      return random.chance(0.01) ? '['.repeat(LARGE_CHARS) : `[${text}]`
    default:
      return random.chance(0.01) ? text + ' '.repeat(LARGE_CHARS) : ''
  }
}
