/**
 * Proofs by DNS (dns-01, RFC 8555 §8.4): a TXT record at `_acme-challenge.<name>`, the only proof that a CA takes for a
 * wildcard. How a record gets there is a port with three implementations; `dns-persist-01` would be a fourth.
 */
import type { Dns01Settings } from './settings.ts'
import { createAcmeDns } from './acme-dns.ts'
import { createCommandHook } from './command.ts'
import { createLookups, type Lookups } from './lookups.ts'
import type { ProofRecord, RecordKeeper } from './record-keeper.ts'
import { createRfc2136 } from './rfc2136.ts'

export interface Dns01 {
  /** Can this name be proven by DNS? */
  covers(host: string): Promise<boolean>
  /** Resolves when every name server that answers shows the records. All of an order are shown at the same time. */
  announce(proofs: readonly Proof[]): Promise<void>
  /** Best effort: what stays behind proves nothing to anyone. */
  withdraw(proofs: readonly Proof[]): Promise<void>
}

/** `host` is the name without its wildcard label, `value` what the CA wants to read. */
export interface Proof {
  readonly host: string
  readonly value: string
}

export const CHALLENGE_LABEL = '_acme-challenge'

export function createDns01(settings: Dns01Settings): Dns01 {
  const lookups = createLookups(settings.resolver)
  return composeDns01(keeperOf(settings, lookups), lookups, settings.waitMs)
}

function keeperOf(settings: Dns01Settings, lookups: Lookups): RecordKeeper {
  switch (settings.kind) {
    case 'rfc2136':
      return createRfc2136(settings, lookups)
    case 'acme-dns':
      return createAcmeDns(settings)
    case 'command':
      return createCommandHook(settings)
    default:
      return settings satisfies never
  }
}

export function composeDns01(
  keeper: RecordKeeper,
  lookups: Pick<Lookups, 'endOf' | 'untilShown'>,
  waitMs: number,
): Dns01 {
  /** Where they were put. A CNAME that cannot be followed later, or leads elsewhere, must not leave one behind. */
  const announced = new Map<string, ProofRecord>()
  const keyOf = ({ host, value }: Proof): string => `${host} ${value}`

  async function recordOf({ host, value }: Proof): Promise<ProofRecord> {
    const asked = `${CHALLENGE_LABEL}.${host}`
    return { asked, name: await lookups.endOf(asked), value }
  }

  /** Removes only what `announce` began to put there: where one record of an order failed, those behind it are nowhere. */
  async function remove(proof: Proof): Promise<void> {
    const record = announced.get(keyOf(proof))
    announced.delete(keyOf(proof))
    if (record !== undefined) await keeper.remove(record)
  }
  return {
    async covers(host) {
      const asked = `${CHALLENGE_LABEL}.${host}`
      return keeper.covers(await lookups.endOf(asked))
    },
    async announce(proofs) {
      const records: ProofRecord[] = []
      for (const proof of proofs) {
        const record = await recordOf(proof)
        announced.set(keyOf(proof), record)
        await keeper.present(record)
        records.push(record)
      }
      for (const record of records) await lookups.untilShown(record, waitMs)
    },
    async withdraw(proofs) {
      for (const proof of proofs) await remove(proof).catch(() => {})
    },
  }
}
