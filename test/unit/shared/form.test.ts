import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAX_FORM_PAIRS, parseForm, parseQuery } from '../../../shared/http/form.ts'

const pairsOf = (text: string): [string, string][] => [...parseQuery(text)]

describe('a form is read as the URL standard says', () => {
  test.each([
    '',
    '&',
    '&&&',
    '=',
    'a',
    'a=',
    '=b',
    'a=b',
    'a=b=c',
    'a=1&a=2&&b',
    'a+b=c+d',
    'a%2Bb=%2B',
    'a=%',
    'a=%4',
    'a=%4g&b=%zz',
    'a=%41%62',
    'a=%E4%B8%96',
    'a=%ff%fe',
    'a=%E4%B8',
    'é=ü%C3%BC',
    'a=\ud800',
    'a=%00',
    'a=%EF%BB%BFb',
    '%26=%3D',
    'constructor=1&__proto__=2',
  ])('%j', (text) => expect(pairsOf(text)).toEqual([...new URLSearchParams(text.replace(/^\?/, ''))]))

  test('whatever is sent', () => {
    const piece = fc.oneof(fc.constantFrom('&', '=', '+', '%', '%4', '%41', '%C3', '%BC', 'a'), fc.string())
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const text = `x${pieces.join('')}`
        expect(pairsOf(text)).toEqual([...new URLSearchParams(text)])
      }),
      { seed: 1, numRuns: 2000 },
    )
  })

  // Node reads characters beyond ASCII as bytes when an escape beside them is broken.
  test('characters that are not escaped stand for themselves', () => {
    expect(pairsOf('xé%41%')).toEqual([['xéA%', '']])
    expect(pairsOf('世=%zz界+')).toEqual([['世', '%zz界 ']])
  })
})

test('a form of more pairs than a form has, or of bytes that are no text, is no form', () => {
  expect(parseForm('a&'.repeat(MAX_FORM_PAIRS))).toHaveProperty('size', MAX_FORM_PAIRS)
  expect(parseForm('a&'.repeat(MAX_FORM_PAIRS + 1))).toBe('too many fields')
  expect(parseForm(`${'&'.repeat(1000)}a=b`).toString()).toBe('a=b')
  expect(['a=%ED%A0%80', '%ff', 'a=%C3'].map(parseForm)).toEqual(['not UTF-8', 'not UTF-8', 'not UTF-8'])
  expect(parseForm('a=%EF%BF%BD').toString()).toBe('a=%EF%BF%BD')
})

/** Where `new URLSearchParams` is given something, and what. Foreign text goes through `parseForm`. */
const GIVEN: Readonly<Record<string, string>> = {
  'form.ts: new URLSearchParams(pairs': 'pairs that were read there',
  's3-client.ts: new URLSearchParams(query': 'an object of ours',
  'authorize.ts: new URLSearchParams([...parameters].filter(([name]': 'pairs that were read',
  'rules.ts: new URLSearchParams(given': 'an object of ours',
  'draft.ts: new URLSearchParams([...sent].filter(([name]': 'pairs that were read',
  'returned-forms.ts: new URLSearchParams([...draft.values].filter(([name]': 'pairs that were read',
  'returned-forms.ts: new URLSearchParams([...sent].filter(([name]': 'pairs that were read',
  'list-order.ts: new URLSearchParams({': 'an object of ours',
  'publish-result.ts: new URLSearchParams({ drop: drop.id, claim }': 'an object of ours',
  'sign-in-view.ts: new URLSearchParams({': 'an object of ours',
  'viewer-pages.ts: new URLSearchParams({ site: provider.siteId, host, next }': 'an object of ours',
}

/** Where `URL` is given text, and why that text is short. */
const PARSED: Readonly<Record<string, string>> = {
  'analytics.ts: URL.parse(text': '200 characters, by its schema',
  'answers.ts: new URL(baseUrl': 'a setting',
  'authorize.ts: new URL(redirectUri': 'comes in a query, which the server bounds, and is registered',
  'judgement.ts: URL.parse(acmeDirectoryUrl': 'a setting',
  'checks.ts: new URL(url': 'a setting',
  'edge-checks.ts: new URL(acmeDirectoryUrl': 'a setting',
  'place.ts: URL.parse(text': 'a setting',
  'clients.ts: new URL(clientId': 'comes in a query or a form of 16 kB',
  'client.ts: new URL(issuer': 'a setting',
  'client.ts: new URL(keys': 'what the provider of the operator says',
  'provider-pages.ts: new URL(`${config.baseUrl}${PROVIDER_PATHS.callback}?${request.query.toString(':
    'a query, which the server bounds',
  'provider.ts: URL.parse(issuer': 'a setting',
  'convert.ts: URL.parse(address.trim(': 'at most 2000 characters are read',
  'llms-txt.ts: new URL(address': 'an address of ours',
  'config.ts: URL.parse(url': 'a setting',
  'config.ts: URL.parse(issuer': 'a setting',
  'factors.ts: new URL(baseUrl': 'a setting',
  'passkeys.ts: new URL(baseUrl': 'a setting',
  'drops.ts: new URL(issuer': 'a setting, or a forge that we name',
  'drops.ts: new URL(url': '500 characters, by the schema of what an issuer says',
  'show-version.ts: new URL(issuer': 'a setting, or a forge that we name',
  'env.ts: URL.parse(raw': 'a setting',
  'facts.ts: new URL(config.baseUrl': 'a setting',
  'html.ts: URL.parse(text.trim(': 'a field of a template, of MAX_FIELD_CHARS',
  "links.ts: URL.parse(base, 'https://drop.invalid/'": 'MAX_BASE_CHARS',
  'links.ts: URL.parse(url, this.#base.href': 'MAX_ADDRESS_CHARS',
  'location.ts: URL.parse(text': 'a setting',
  "location.ts: URL.parse(url?.searchParams.get('endpoint'": 'a setting',
  'migrate.ts: new URL(name, folder': 'a file of ours',
  'origins.ts: new URL(baseUrl': 'a setting',
  'public-fetch.ts: new URL(address': 'the id of a client, from a query or a form of 16 kB',
  'publish-result.ts: new URL(drop.claim_url': 'an address of ours',
  'report-address.ts: new URL(baseUrl': 'a setting',
  'rules.ts: URL.parse(text': 'at most 2000 characters are read',
  'proxy.ts: new URL(url': 'a setting',
  'send.ts: new URL(text': 'was read when the webhook was made',
  'send.ts: new URL(url': 'was read when the webhook was made',
  'thumbnail.ts: new URL(url': 'an address of ours',
  'webhooks.ts: new URL(row.url': 'was read when the webhook was made',
  'webhooks.ts: new URL(url': 'at most 2000 characters, read before',
  'rules.ts: URL.parse(clientId': 'comes in a query or a form of 16 kB',
  'rules.ts: URL.parse(uri': 'comes in a query or a registration of 16 kB',
  'rules.ts: new URL(redirectUri': 'comes in a query, which the server bounds, and is registered',
  'settings.ts: new URL(baseUrl': 'a setting',
  'stack.ts: new URL(redisUrl': 'a setting',
  'status.ts: new URL(baseUrl': 'a setting',
  'stripe.ts: new URL(apiBase': 'a setting',
  'worker.ts: new URL(config.baseUrl': 'a setting',
}

const ROOT = path.resolve(import.meta.dirname, '../../..')
const SOURCES = globSync('{edge,control,shared,certs}/**/*.ts', { cwd: ROOT }).filter(
  (file) => !file.includes('/browser/'),
)

/** Each use in the sources, as far as the pattern reads. */
function usesOf(pattern: RegExp): string[] {
  const uses = SOURCES.flatMap((file) =>
    readFileSync(path.join(ROOT, file), 'utf8')
      .split('\n')
      .filter((line) => !/^\s*(?:\/?\*|\/\/)/.test(line))
      .flatMap((line) => [...line.matchAll(pattern)].map(([use]) => `${path.basename(file)}: ${use}`)),
  )
  return [...new Set(uses)].toSorted()
}

describe('foreign text for parsers of Node', () => {
  test('none is given to URLSearchParams', () => {
    expect(usesOf(/new URLSearchParams\((?!\))[^)]*/g)).toEqual(Object.keys(GIVEN).toSorted())
  })

  test('none is given to querystring, whose time nobody promises', () => {
    expect(usesOf(/['"](?:node:)?querystring['"]/g)).toEqual([])
  })

  test('what URL reads is short', () => {
    expect(usesOf(/(?:new URL|URL\.(?:parse|canParse))\((?![^)]*import\.meta\.url)[^)]*/g)).toEqual(
      Object.keys(PARSED).toSorted(),
    )
  })
})
