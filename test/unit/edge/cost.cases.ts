/** The worst that a visitor says, up to the most that the edge lets in. */
import { createUnlock } from '../../../edge/gate/unlock.ts'
import { locate } from '../../../edge/locate/locate.ts'
import { readPath } from '../../../edge/locate/request-path.ts'
import { indexManifest } from '../../../edge/locate/site-index.ts'
import { extendPolicies } from '../../../edge/rewrite/csp.ts'
import { chooseLanguage } from '../../../edge/rewrite/language.ts'
import { chooseEncoding } from '../../../edge/rewrite/negotiate.ts'
import { evaluate } from '../../../edge/send/preconditions.ts'
import { systemClock } from '../../../shared/running/clock.ts'
import { readProxyHeader } from '../../../edge/accept/visitors/proxy-header.ts'
import { parseTraceparent } from '../../../shared/running/traces.ts'
import { parseAuthority } from '../../../shared/http/hosts.ts'
import { createProofOfWork } from '../../../shared/secrets/proof-of-work.ts'
import { createSecrets } from '../../../shared/secrets/secrets.ts'
import { manifestOf, routeOf } from '../../support/manifests.ts'
import { workCase, type WorkCase } from '../../support/counting/cases.ts'

const MAX_TARGET_CHARS = 8192
const MAX_HEADER_CHARS = 32_768
const fill =
  (start: string, unit: string) =>
  (chars: number): string =>
    start + unit.repeat(Math.ceil((chars - start.length) / unit.length))

const latin1 = (text: string): string => Buffer.from(text).toString('latin1')

const targets: Readonly<Record<string, (chars: number) => string>> = {
  'many segments': fill('/', 'a/'),
  'one segment': fill('/', 'a'),
  slashes: fill('/', '/'),
  dots: fill('/', './'),
  'encoded dots': fill('/', '%2e%2e%2f'),
  'broken escapes': fill('/', '%'),
  'encoded slashes': fill('/', '%2f'),
  'marks over one letter': (chars) =>
    `/a${latin1('\u0301'.repeat(Math.ceil(chars / 4)) + '\u0323'.repeat(Math.ceil(chars / 4)))}`,
  'a query': fill('/?', '?&='),
}

const rules = {
  redirects: [
    ...Array.from({ length: 300 }, (_, index) => `/a*/:a/:b/x${index} /b 301`),
    ...Array.from({ length: 300 }, (_, index) => `/*/a/${index} /c/:splat 200!`),
    ...Array.from({ length: 300 }, () => '/* /:splat 200'),
  ],
  headers: Array.from({ length: 300 }, (_, index) => [`/:a/*${index}`, [['x-a', '1']]] as const),
}
export const sites = {
  'an empty site': indexManifest(manifestOf([])),
  'a site with 404 pages': indexManifest(
    manifestOf(['index.html', '404.html', 'a/404.html', `${'a/'.repeat(30)}404.html`]),
  ),
  'a site with many rules': indexManifest(manifestOf(['index.html', '404.html'], rules)),
}

const secrets = createSecrets('k'.repeat(64))
const unlock = createUnlock({ secrets, proofOfWork: createProofOfWork(secrets), clock: systemClock, tell: () => {} })
const locked = routeOf({ password: { hash: 'h', generation: 1 } })
const file = { etag: `"${'a'.repeat(32)}"`, size: 1_000_000 }
const nothing = {
  method: 'GET',
  ifMatch: undefined,
  ifNoneMatch: undefined,
  ifRange: undefined,
  range: undefined,
}
const variants = { br: { hash: '', size: 1 }, gzip: { hash: '', size: 1 } }
const needs = { scriptSrc: ["'sha256-x'"], connectSrc: ['https://a.example'], imgSrc: [], styleSrc: [], frameSrc: [] }

const headers: Readonly<Record<string, [units: readonly string[], read: (header: string) => unknown]>> = {
  cookie: [[';', '=', '__Host-dropway-unlock=a;', ' '], (header) => unlock.isUnlocked(locked, header)],
  range: [
    ['bytes=', '0-1,', ' ', '0'],
    (header) => [header, `bytes=${header}`].map((range) => evaluate({ ...nothing, range }, file)),
  ],
  'if-none-match': [['"', 'W/', '"a",'], (ifNoneMatch) => evaluate({ ...nothing, ifNoneMatch }, file)],
  'if-match': [['W/"', '"" '], (ifMatch) => evaluate({ ...nothing, ifMatch }, file)],
  'accept-encoding': [['gzip;q=0.5,', ' '], (header) => chooseEncoding(header, variants)],
  'accept-language': [['de-', ' ', 'a;q=0.5,'], chooseLanguage],
  host: [['a', '-', 'a.'], parseAuthority],
  traceparent: [['0', '-', '00-'], parseTraceparent],
  'what a balancer says before a request': [
    ['PROXY ', 'PROXY TCP4 1', ' '],
    (text) =>
      [text, `PROXY ${text}`, `\r\n\r\n\0\r\nQUIT\n\x21\x11\x20\0${text}`].map((said) =>
        readProxyHeader(Buffer.from(said, 'latin1')),
      ),
  ],
  'content-security-policy of the drop': [
    [',', ' ', "'none' ", "script-src 'self';", 'x-;', "default-src 'none',"],
    (header) => extendPolicies(header, needs),
  ],
}

/** Of a length that a request may have; the figures for paths of many segments are compared with those of one segment. */
const TARGET = { largest: MAX_TARGET_CHARS, counted: MAX_TARGET_CHARS, maxPerUnit: 60 }

export const cases: Readonly<Record<string, WorkCase>> = Object.fromEntries([
  ...Object.entries(targets).flatMap(([name, make]) => [
    [`${name}: read`, workCase(make, readPath, TARGET)],
    ...Object.entries(sites).map(([site, index]) => {
      const find = (target: string) => locate(index, { target, spaFallback: false, fetchDest: undefined })
      return [`${name}: located in ${site}`, workCase(make, find, TARGET)] as const
    }),
  ]),
  ...Object.entries(headers).flatMap(([name, [units, read]]) =>
    units.map((unit) => [
      `${name} made of ${JSON.stringify(unit)}`,
      workCase(fill('', unit), read, { largest: MAX_HEADER_CHARS, counted: MAX_HEADER_CHARS }),
    ]),
  ),
])
