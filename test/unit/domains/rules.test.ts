import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as rules from '../../../control/domains/rules.ts'
import type { RetryState } from '../../../shared/certificate-retry.ts'
import { isHostname } from '../../../shared/hosts.ts'
import { isPublicAddress } from '../../../shared/ip.ts'

const own = { serviceHost: 'dropway.example', sitesDomain: 'dropway.site' }

describe('what may be claimed', () => {
  test.each([
    ['www.example.com', 'www.example.com'],
    ['  Example.COM. ', 'example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['shop.example.co.uk', 'shop.example.co.uk'],
  ])('%s → %s', (input, domain) => expect(rules.parseDomain(input, own)).toEqual({ domain }))

  test.each(
    `. com co.uk github.io localhost *.example.com _acme.example.com a..b.com -a.com 192.0.2.1 1.2.3.4. ::1 [::1] 0x7f.1
     https://example.com example.com/path user@example.com example.com:443 example.com%2f dropway.example
     x.dropway.example slug.dropway.site ${'a'.repeat(64)}.com ${'a.'.repeat(130)}com`
      .split(/\s+/)
      .concat('', 'exa mple.com'),
  )('refuses %j', (input) => expect(rules.parseDomain(input, own)).toHaveProperty('problem'))

  test('whatever is typed, a name that passes is a strict host name', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', 'ü', '.', '-', '_', '%', '/', ':', '@', ' ', '1', 'xn--', '。', '.com'), {
          maxLength: 12,
        }),
        (parts) => {
          const input = parts.join('')
          const parsed = rules.parseDomain(input, own)
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
  ])('the pair of %s is %s', (domain, pair) => expect(rules.pairOf(domain)).toBe(pair))
})

describe('what a check decides', () => {
  const proven = { kind: 'proven', by: 'cname' } as const
  const missing = { kind: 'problem', reason: 'no_record' } as const
  const retry: RetryState = { attempts: 3, next_attempt_ms: 0, reason: 'ca_refused', last_error: '', failures_ms: [] }
  const facts: rules.CheckFacts = {
    state: 'awaiting_dns',
    stopped: false,
    verdict: proven,
    caa: 'allows',
    probe: 'reachable',
    heldElsewhere: false,
    certificateEndsMs: undefined,
    retry: undefined,
    nowMs: 1000,
  }
  test.each<[string, Partial<rules.CheckFacts>, Partial<rules.Decision>]>([
    ['no record', { verdict: missing }, { state: 'awaiting_dns', reason: 'no_record', wanted: false }],
    ['all right, no certificate', {}, { state: 'issuing', reason: null, wanted: true, holds: true }],
    ['all right, certificate', { certificateEndsMs: 2000 }, { state: 'active', reason: null, wanted: true }],
    ['certificate over', { state: 'active', certificateEndsMs: 999 }, { state: 'issuing', wanted: true }],
    [
      'served, DNS gone',
      { state: 'active', verdict: missing, certificateEndsMs: 2000 },
      { state: 'failing', reason: 'no_record', wanted: true },
    ],
    [
      'served, DNS and certificate gone',
      { state: 'failing', verdict: missing, certificateEndsMs: 1 },
      { state: 'awaiting_dns', wanted: false },
    ],
    ['CAA', { caa: 'forbids' }, { state: 'awaiting_dns', reason: 'caa_forbids', wanted: false }],
    [
      'closed port',
      { probe: 'challenge_unreachable' },
      { state: 'issuing', reason: 'challenge_unreachable', wanted: false },
    ],
    ['the CA refused', { retry }, { state: 'issuing', reason: 'ca_refused', wanted: true }],
    [
      'renewal refused often',
      { retry, certificateEndsMs: 2000, state: 'active' },
      { state: 'failing', reason: 'ca_refused', wanted: true },
    ],
    [
      'renewal failed once',
      { retry: { ...retry, attempts: 1 }, certificateEndsMs: 2000, state: 'active' },
      { state: 'active', reason: null },
    ],
    [
      'held elsewhere, CNAME only',
      { heldElsewhere: true },
      { state: 'blocked', reason: 'held_elsewhere', wanted: false, holds: false },
    ],
    [
      'held elsewhere, proven',
      { heldElsewhere: true, verdict: { kind: 'proven', by: 'txt' } },
      { state: 'issuing', holds: true },
    ],
    [
      'plan over',
      { stopped: true, certificateEndsMs: 2000, state: 'active' },
      { state: 'blocked', reason: 'plan_ended', wanted: false },
    ],
  ])('%s', (_, change, expected) => expect(rules.decide({ ...facts, ...change })).toMatchObject(expected))
})

describe('when the CA is asked before its time', () => {
  const retry: RetryState = {
    attempts: 4,
    next_attempt_ms: 0,
    reason: 'challenge_unreachable',
    last_error: '',
    failures_ms: [],
  }
  const decision: rules.Decision = { state: 'issuing', reason: 'challenge_unreachable', holds: true, wanted: true }
  const facts: rules.HurryFacts = { before: 'challenge_unreachable', decision, retry, isAsked: false }
  test.each<[string, Partial<rules.HurryFacts>, boolean]>([
    ['its last complaint stands', {}, false],
    ['the owner asks', { isAsked: true }, true],
    ['DNS was wrong and is right now', { before: 'wrong_target' }, true],
    ['something is still in the way', { isAsked: true, decision: { ...decision, reason: 'caa_forbids' } }, false],
    ['nothing has failed yet', { isAsked: true, retry: undefined }, false],
    ['no certificate is wanted', { isAsked: true, decision: { ...decision, wanted: false } }, false],
  ])('%s', (_, change, expected) => expect(rules.mayHurry({ ...facts, ...change })).toBe(expected))
})

describe('what DNS proves', () => {
  const claim = { domain: 'www.example.com', target: 't-1.dropway.site', verify_token: 'abc' }
  const nothing: rules.DnsFindings = { cnames: [], addresses: [], hasProof: false, failure: undefined, caa: 'allows' }
  test.each<[string, Partial<rules.DnsFindings>, Partial<rules.ClaimFacts>, string]>([
    ['its own target', { cnames: ['t-1.dropway.site'] }, {}, 'cname'],
    ["another drop's target", { cnames: ['t-2.dropway.site'] }, {}, 'wrong_target'],
    ['addresses of a subdomain', { addresses: ['192.0.2.1'] }, {}, 'wrong_target'],
    ['addresses of an apex', { addresses: ['192.0.2.1'] }, { domain: 'example.com' }, 'txt_missing'],
    ['addresses and proof', { addresses: ['192.0.2.1'], hasProof: true }, { domain: 'example.com' }, 'txt'],
    ['proof, but nothing points here', { hasProof: true }, { domain: 'example.com' }, 'no_record'],
    ['nothing', {}, {}, 'no_record'],
    ['an error', { failure: 'servfail' }, {}, 'servfail'],
  ])('%s', (_, findings, change, outcome) => {
    const verdict = rules.judgeDns({ ...nothing, ...findings }, { ...claim, ...change })
    expect(verdict.kind === 'proven' ? verdict.by : verdict.reason).toBe(outcome)
  })
})

test.each([
  ['93.184.216.34', true],
  ['2606:2800:220:1:248:1893:25c8:1946', true],
  ['127.0.0.1', false],
  ['10.1.2.3', false],
  ['169.254.169.254', false],
  ['100.64.0.1', false],
  ['::1', false],
  ['::ffff:127.0.0.1', false],
  ['fd00::1', false],
  ['fe80::1', false],
  ['not-an-address', false],
])('only public addresses are looked at: %s %s', (address, isPublic) => expect(isPublicAddress(address)).toBe(isPublic))
