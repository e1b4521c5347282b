/**
 * Whose name it is. A proof is good once, for the account that it was made for:
 *   1. who holds a name goes on holding it
 *   2. a name that is not held goes to the first account with a proof
 *   3. from a holder it goes to an account that shows the token of this very transfer, or, when the holder's own proof
 *      has left the zone, to one with a proof that was not there when it lost the name
 * The loser of a name gets a new token, and an alias to it counts again only after it was seen to be gone: what is
 * left over in a zone takes nothing back, so an unedited zone never moves a name twice. No I/O, no clock.
 */
import type { Observation } from '../dns/observe.ts'

export interface NameProof {
  /** The drop's own name, which only this drop's owner is shown. */
  readonly dnsTarget: string
  readonly token: string
  /** Set while another account holds the name: shown, it moves the name. */
  readonly transferToken: string | null
  /** The alias in the zone is the one with which this account has already lost the name. */
  readonly isCnameSpent: boolean
}

/** Undefined: the question failed, so that nothing can be said. */
export interface Evidence {
  readonly txt: boolean | undefined
  readonly transfer: boolean
  readonly cname: boolean | undefined
}

type Zone = Pick<Observation, 'txts' | 'chain' | 'failure'>

export function verifyValue(token: string): string {
  return `dropway-verify=${token}`
}

/** Says in the zone itself what it is there for. */
export function transferValue(token: string): string {
  return `dropway-transfer=${token}`
}

export function evidenceOf(proof: NameProof, zone: Zone): Evidence {
  const { token, transferToken } = proof
  const pointsHere = zone.chain.includes(proof.dnsTarget)
  return {
    // A name that was moved by its transfer token is proven by it from then on.
    txt: zone.txts && (zone.txts.includes(verifyValue(token)) || zone.txts.includes(transferValue(token))),
    transfer: transferToken !== null && (zone.txts?.includes(transferValue(transferToken)) ?? false),
    cname: pointsHere ? true : zone.failure ? undefined : false,
  }
}

export type Ownership = 'holds' | 'takes_over' | 'held_elsewhere' | 'unproven'

export interface OwnershipFacts {
  readonly proof: NameProof
  readonly isHolder: boolean
  /** The proof of the other account, which holds the name. */
  readonly holder: NameProof | undefined
  readonly zone: Zone
}

export function judgeOwnership({ proof, isHolder, holder, zone }: OwnershipFacts): Ownership {
  if (isHolder) return 'holds'
  const own = evidenceOf(proof, zone)
  if (!holder) return own.txt || own.cname ? 'holds' : 'unproven'
  if (own.transfer) return 'takes_over'
  const theirs = evidenceOf(holder, zone)
  const isAbandoned = theirs.txt === false && theirs.cname === false
  return isAbandoned && (own.txt || (own.cname && !proof.isCnameSpent)) ? 'takes_over' : 'held_elsewhere'
}

/** Does an alias that was left over no longer stand there, so that the next one counts? */
export function isAliasFresh(proof: NameProof, zone: Zone): boolean {
  return evidenceOf(proof, zone).cname === false
}
