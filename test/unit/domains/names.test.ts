import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  baseOf,
  hostInZone,
  inBothForms,
  pairOf,
  parseDomain,
  unicodeOf,
  visitedName,
  zoneOf,
} from '../../../control/drops/domains/dns/names.ts'
import { isHostname } from '../../../shared/http/hosts.ts'

const own = { serviceHost: 'dropway.example', sitesDomain: 'dropway.site' }

describe('what may be added', () => {
  test.each([
    ['www.example.com', 'www.example.com'],
    ['  Example.COM. ', 'example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['shop.example.co.uk', 'shop.example.co.uk'],
  ])('%s → %s', (input, domain) => expect(parseDomain(input, own)).toEqual({ domain }))

  test.each(
    `. com co.uk github.io localhost _acme.example.com a..b.com -a.com 192.0.2.1 1.2.3.4. ::1 [::1] 0x7f.1
     https://example.com example.com/path user@example.com example.com:443 example.com%2f dropway.example
     x.dropway.example slug.dropway.site ${'a'.repeat(64)}.com ${'a.'.repeat(130)}com`
      .split(/\s+/)
      .concat('', 'exa mple.com'),
  )('refuses %j', (input) => expect(parseDomain(input, own)).toHaveProperty('problem'))

  test('whatever is typed, a name that passes is a strict host name', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', 'ü', '.', '-', '_', '%', '/', ':', '@', ' ', '1', 'xn--', '。', '.com'), {
          maxLength: 12,
        }),
        (parts) => {
          const input = parts.join('')
          const parsed = parseDomain(input, own)
          if ('domain' in parsed) expect(isHostname(parsed.domain)).toBe(true)
        },
      ),
    )
  })

  test.each([
    ['example.com', 'www.example.com'],
    ['www.example.com', 'example.com'],
    ['shop.example.com', undefined],
    ['www.shop.example.com', undefined],
    ['example.co.uk', 'www.example.co.uk'],
  ])('the pair of %s is %s', (domain, pair) => expect(pairOf(domain)).toBe(pair))

  test.each([
    ['shop.printer.local', 'local network'],
    ['db.internal', 'private networks'],
    ['abcdefgh.onion', 'Tor'],
    ['router.home.arpa', 'infrastructure'],
    ['site.invalid', 'must not exist'],
    ['nas.lan', 'private networks'],
    ['shop.test', 'tests'],
    ['shop.example', 'examples'],
    ['www.example.com', 'examples'],
  ])('%s means nothing in the public DNS: %s', (input, purpose) =>
    expect(parseDomain(input, { serviceHost: 'dropway.net', sitesDomain: 'drops.net' })).toEqual({
      problem: expect.stringContaining(purpose) as string,
    }),
  )

  test.each(['localhost', '127.0.0.1', 'dropway.test'])('a service at %s may use names for tests', (serviceHost) =>
    expect(parseDomain('shop.test', { serviceHost, sitesDomain: 'drops.localhost' })).toEqual({ domain: 'shop.test' }),
  )

  test.each([
    ['*.docs.example.co.uk', 'docs.example.co.uk', 'dropway-check.docs.example.co.uk', '*.docs'],
    ['*.Bücher.example', 'xn--bcher-kva.example', 'dropway-check.xn--bcher-kva.example', '*'],
  ])('the wildcard %s is below %s, looked at by %s, typed as %s', (typed, base, visited, host) => {
    const domain = `*.${base}`
    expect(parseDomain(typed, own)).toEqual({ domain })
    expect([baseOf(domain), visitedName(domain), pairOf(domain)]).toEqual([base, visited, undefined])
    expect(hostInZone(domain, zoneOf(domain))).toBe(host)
    expect(unicodeOf(domain)).toBe(domain === typed ? null : '*.bücher.example')
  })

  test.each(
    `* *. *.com *.co.uk *.*.example.com a.*.example.com *a.example.com *.dropway.site *.dropway.example *.192.0.2.1
     *.${'a.'.repeat(115)}com`.split(/\s+/),
  )('no wildcard: %j', (input) => expect(parseDomain(input, own)).toHaveProperty('problem'))

  test.each([
    ['example.com', 'example.com', '@'],
    ['www.example.com', 'example.com', 'www'],
    ['_dropway.shop.example.co.uk', 'example.co.uk', '_dropway.shop'],
  ])('%s lies in %s as %s', (name, zone, host) => expect([zoneOf(name), hostInZone(name, zone)]).toEqual([zone, host]))

  test('an international name is said in both forms', () => {
    expect(inBothForms('xn--bcher-kva.example')).toBe('bücher.example (xn--bcher-kva.example)')
    expect(inBothForms('shop.example')).toBe('shop.example')
  })
})
