import { describe, expect, test } from 'vitest'
import {
  judgeOwnership,
  transferValue,
  verifyValue,
  type NameProof,
} from '../../../control/drops/domains/doctor/ownership.ts'

const mine: NameProof = { dnsTarget: 't-mine.sites.test', token: 'mine', transferToken: null, isCnameSpent: false }
const theirs: NameProof = {
  dnsTarget: 't-theirs.sites.test',
  token: 'theirs',
  transferToken: null,
  isCnameSpent: false,
}
const asking: NameProof = { ...mine, transferToken: 'move' }
const nothing = { txts: [], chain: [], failure: undefined }
const servfail = { txts: undefined, chain: [], failure: { kind: 'servfail', name: 'x.test' } } as const
const aliased = (proof: NameProof) => ({ ...nothing, chain: [proof.dnsTarget] })
const shows = (...txts: string[]) => ({ ...nothing, txts })

describe('a name that no one holds', () => {
  test.each([
    ['an empty zone', nothing, 'unproven'],
    ['a zone that does not answer', servfail, 'unproven'],
    ['its token', shows(verifyValue('mine')), 'holds'],
    ["another account's token", shows(verifyValue('theirs')), 'unproven'],
    ['its alias', aliased(mine), 'holds'],
    ['its alias, behind others', { ...nothing, chain: ['cdn.test', mine.dnsTarget] }, 'holds'],
    ["another drop's alias", aliased(theirs), 'unproven'],
  ] as const)('%s: %s', (_, zone, expected) =>
    expect(judgeOwnership({ proof: mine, isHolder: false, holder: undefined, zone })).toBe(expected),
  )
})

describe('a name that another account holds', () => {
  test.each([
    ['both tokens side by side', mine, shows(verifyValue('theirs'), verifyValue('mine')), 'held_elsewhere'],
    [
      'its token beside the alias of the holder',
      mine,
      { ...aliased(theirs), txts: [verifyValue('mine')] },
      'held_elsewhere',
    ],
    ['the token of the transfer', asking, shows(verifyValue('theirs'), transferValue('move')), 'takes_over'],
    [
      'the token of the transfer, said to be a proof',
      asking,
      shows(verifyValue('theirs'), verifyValue('move')),
      'held_elsewhere',
    ],
    ['the token of another transfer', asking, shows(verifyValue('theirs'), transferValue('old')), 'held_elsewhere'],
    ['nothing of the holder any more, and its token', mine, shows(verifyValue('mine')), 'takes_over'],
    ['nothing of the holder any more, and its alias', mine, aliased(mine), 'takes_over'],
    ['nothing of either', mine, nothing, 'held_elsewhere'],
    ['the alias with which it lost the name', { ...mine, isCnameSpent: true }, aliased(mine), 'held_elsewhere'],
    ['a zone that does not answer', mine, { ...servfail, chain: [mine.dnsTarget] }, 'held_elsewhere'],
    [
      'a holder that was moved here by its transfer',
      mine,
      shows(transferValue('theirs'), verifyValue('mine')),
      'held_elsewhere',
    ],
  ] as const)('%s: %s', (_, proof, zone, expected) =>
    expect(judgeOwnership({ proof, isHolder: false, holder: theirs, zone })).toBe(expected),
  )
})

test('who holds a name goes on holding it, whatever its zone says', () => {
  for (const zone of [nothing, servfail, shows(verifyValue('theirs'), transferValue('move')), aliased(theirs)])
    expect(judgeOwnership({ proof: mine, isHolder: true, holder: undefined, zone })).toBe('holds')
})
