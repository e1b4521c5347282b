/** What the zone of a wildcard has to hold: the alias of every name, the alias of the proof, and permission for wildcards. And what other names hear. */
import { expect, test } from 'vitest'
import { diagnose, type WantedZone } from '../../../control/drops/domains/doctor/diagnose.ts'
import type { Observation } from '../../../control/drops/domains/dns/observe.ts'

const TARGET = 't-1.sites.example'
const PROOFS = '_acme-challenge.sites.example'
const wanted: WantedZone = {
  domain: '*.docs.example.com',
  target: TARGET,
  serviceAddresses: ['192.0.2.1'],
  proof: 'dropway-verify=1',
  isProven: true,
  isTransfer: false,
  proofsAt: PROOFS,
  authorities: ['our-ca.test'],
  challengePort: 80,
}
const right: Observation = {
  chain: [TARGET],
  chainEnd: 'name',
  addresses: ['192.0.2.1'],
  failure: undefined,
  txts: [],
  caa: { kind: 'none' },
  delegation: [PROOFS],
  strays: [],
  probes: [],
}
const caa = (...properties: readonly (readonly [tag: string, value: string])[]): Partial<Observation> => ({
  caa: {
    kind: 'set',
    name: 'example.com',
    properties: properties.map(([tag, value]) => ({ isCritical: false, tag, value })),
  },
})
const proofLine = (action: string, ...found: readonly string[]): string =>
  [action, '_acme-challenge.docs', 'CNAME', PROOFS, ...found].join(' ')

test.each<[what: string, seen: Partial<Observation>, reason: string | null, lines: readonly string[]]>([
  ['all is there', {}, null, []],
  ['the alias leads on, as to acme-dns', { delegation: [PROOFS, 'd420.acme-dns.example'] }, null, []],
  ['no alias for the proof', { delegation: [] }, 'delegation_missing', [proofLine('add')]],
  ['the wildcard answers for it', { delegation: [TARGET] }, 'delegation_missing', [proofLine('add')]],
  [
    'it leads elsewhere',
    { delegation: ['else.example'] },
    'delegation_missing',
    [proofLine('replace', 'else.example')],
  ],
  [
    'nothing yet',
    { chain: [], addresses: [], delegation: [] },
    'no_record',
    [`add *.docs CNAME ${TARGET}`, proofLine('add')],
  ],
  ['any name may be issued', caa(['issue', 'our-ca.test']), null, []],
  ['wildcards may', caa(['issue', ';'], ['issuewild', 'our-ca.test']), null, []],
  [
    'wildcards may not, whatever other names may',
    caa(['issue', 'our-ca.test'], ['issuewild', ';']),
    'caa_forbids',
    ['add @ CAA 0 issuewild "our-ca.test" 0 issue "our-ca.test",0 issuewild ";"'],
  ],
  ['proven by DNS alone', caa(['issue', 'our-ca.test; validationmethods=dns-01']), null, []],
  [
    'proven over HTTP alone',
    caa(['issue', 'our-ca.test; validationmethods=http-01']),
    'caa_forbids',
    ['add @ CAA 0 issue "our-ca.test" 0 issue "our-ca.test; validationmethods=http-01"'],
  ],
])('%s', (_, seen, reason, lines) => {
  const diagnosis = diagnose({ ...right, ...seen }, wanted)
  expect(diagnosis.reason).toBe(reason)
  expect(
    diagnosis.records.map(({ action, host, type, value, found }) =>
      [action, host, type, value, ...(found.length > 0 ? [found.join(',')] : [])].join(' '),
    ),
  ).toEqual(lines)
})

test('other names are held by no word about wildcards, and proven over HTTP', () => {
  const name = { ...wanted, domain: 'docs.example.com', proofsAt: undefined }
  const reasonOf = (seen: Partial<Observation>): string | null => diagnose({ ...right, ...seen }, name).reason
  expect(reasonOf({ ...caa(['issue', 'our-ca.test'], ['issuewild', ';']), delegation: [] })).toBe(null)
  expect(reasonOf(caa(['issue', 'our-ca.test; validationmethods=dns-01']))).toBe('caa_forbids')
})

test('a name that was proven by its alias, and has an address now, hears of no record that it never had', () => {
  const name = { ...wanted, domain: 'example.com', proofsAt: undefined }
  const { reason, warnings } = diagnose({ ...right, chain: [], delegation: [] }, name)
  expect(reason).toBe(null)
  expect(warnings).toEqual([
    expect.stringMatching(/^Nothing in the zone proves the name.*without the TXT record _dropway/),
  ])
  expect(warnings.join()).not.toContain('gone')
})
