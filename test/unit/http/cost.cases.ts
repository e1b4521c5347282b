/** The worst bodies, forms and addresses that callers send to control. */
import { matchPath } from '../../../control/doors/dashboard/frame/asked.ts'
import { requireJsonShape } from '../../../control/ground/http/bodies/json-shape.ts'
import { createAllowedMethods } from '../../../control/ground/http/server/patterns.ts'
import { Router } from '../../../control/ground/uws/router.ts'
import { parseForm, parseQuery } from '../../../shared/http/form.ts'
import { MAX_FILE_LIST_BYTES, MAX_TEXT_FORM_BYTES } from '../../../shared/contracts/limits.ts'
import { requireFields, requireTexts } from '../../../shared/values/text.ts'
import { fill, grouped, repeated, workCase, type WorkCase } from '../../support/counting/cases.ts'

const JSON_TEXTS: Readonly<Record<string, (n: number) => string>> = {
  backslashes: (n) => `"${'\\'.repeat(n)}`,
  'escaped quotes': (n) => `"${'\\"'.repeat(n / 2)}`,
  quotes: repeated('"'),
  brackets: repeated('[]'),
  digits: repeated('1'),
}

const FORMS: Readonly<Record<string, (n: number) => string>> = {
  'names without values': repeated('a&'),
  ampersands: repeated('&'),
  'equals signs': repeated('='),
  'one long value': (n) => `a=${fill('b', n)}`,
  escapes: (n) => `a=${fill('%41', n)}`,
  'broken escapes': (n) => `a=${fill('%', n)}`,
  'plus signs': (n) => `a=${fill('+', n)}`,
  'bytes that are no text': (n) => `a=${fill('%ff', n)}`,
}

/** As many as the service has, and as deep. */
const ROUTES = Array.from({ length: 160 }, (_, index) => ({
  method: 'GET' as const,
  path: `/api/v1/:a/x${index % 40}/:b${index % 3 === 0 ? '/y/:c' : ''}`,
}))
const router = new Router<number>()
for (const [index, { path }] of ROUTES.entries()) router.add(path, index)
router.add('/*', -1)

const allowedMethods = createAllowedMethods(ROUTES)

const ADDRESS = { largest: 16_384, counted: 16_384, maxPerUnit: 12 }
const ADDRESSES: Readonly<Record<string, (n: number) => string>> = {
  'one segment': (n) => `/${fill('a', n)}`,
  'thousands of segments': (n) => `/api/v1${fill('/a', n)}`,
  'thousands of empty segments': repeated('/'),
}
const READERS: Readonly<Record<string, (path: string) => unknown>> = {
  'is routed': (path) => router.match(path),
  'is asked for its methods': (path) => allowedMethods(path),
  'is looked for among forms': (path) => ROUTES.map((route) => matchPath(route.path, path)),
}

export const cases: Readonly<Record<string, WorkCase>> = {
  ...Object.fromEntries(
    Object.entries(JSON_TEXTS).map(([name, make]) => [
      `JSON of ${name}`,
      workCase(
        (n) => Buffer.from(make(n)),
        (bytes) => requireJsonShape(bytes, { maxDepth: 32, maxValues: Infinity }),
        { largest: MAX_FILE_LIST_BYTES, counted: 65_536 },
      ),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(FORMS).flatMap(([name, make]) => [
      [`a form of ${name}`, workCase(make, parseForm, { largest: MAX_TEXT_FORM_BYTES, counted: 65_536 })],
      [`a query of ${name}`, workCase(make, (text) => requireFields(parseQuery(text)), { largest: 16_384 })],
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(ADDRESSES).flatMap(([name, make]) =>
      Object.entries(READERS).map(([what, read]) => [`an address of ${name} ${what}`, workCase(make, read, ADDRESS)]),
    ),
  ),
  ...grouped('texts', {
    'in lists': workCase((n) => Array.from({ length: n }, () => 'a'), requireTexts, { largest: 200_000 }),
    'in objects': workCase((n) => Array.from({ length: n }, (_, index) => ({ [`a${index}`]: 'b' })), requireTexts, {
      largest: 200_000,
    }),
  }),
}
