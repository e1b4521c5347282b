/**
 * What stands in Redis, read and found good or refused with a reason. One broken entry costs its own name alone, and is
 * never taken for read: control, which waits for it, learns that it was refused.
 */
import { decodeRouteRecord } from '../../../shared/contracts/route-record.ts'
import type { StreamEntry } from '../../../shared/redis/commands.ts'
import { decodeDomainWish, decodeStreamMessage } from '../../../shared/redis/stream.ts'
import { MAX_NAME_BYTES, refusalKey, type Entry, type Kind, type Refusal } from '../replica/replica.ts'

export interface Read {
  readonly entries: Entry[]
  readonly refused: Refusal[]
}

export function readSnapshot(kind: 'route' | 'certificate', page: readonly (readonly [string, string])[]): Read {
  return readEach(
    page,
    ([name, value]) => ({ kind, name, revision: revisionIn(value) }),
    ([name, value]) => readEntry(kind, name, value),
  )
}

export function readLog(entries: readonly StreamEntry[]): Read {
  return readEach(
    entries,
    ([id, fields]) => ({
      kind: fieldOf('kind', fields) ?? 'unknown',
      name: fieldOf('name', fields) ?? id,
      revision: revisionIn(fieldOf('value', fields)),
    }),
    ([, fields]) => {
      const { kind, name, value } = decodeStreamMessage(fields)
      return readEntry(kind, name, value)
    },
  )
}

export function isAbout(kind: Kind, fields: readonly string[]): boolean {
  return fieldOf('kind', fields) === kind
}

function readEach<Item>(
  items: readonly Item[],
  subjectOf: (item: Item) => Omit<Refusal, 'reason'>,
  read: (item: Item) => Entry,
): Read {
  const entries: Entry[] = []
  // What comes later in the same batch replaces what could not be read, and the reverse.
  const refused = new Map<string, Refusal>()
  for (const item of items) {
    try {
      const entry = read(item)
      entries.push(entry)
      refused.delete(refusalKey(entry))
    } catch (error) {
      const refusal = { ...subjectOf(item), reason: firstLine(error) }
      refused.set(refusalKey(refusal), refusal)
    }
  }
  return { entries, refused: [...refused.values()] }
}

/** Throws when it is not what the contract says. */
function readEntry(kind: Kind, name: string, value: string): Entry {
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) throw new Error('the name is too long')
  if (kind === 'domain' && value !== '') decodeDomainWish(value)
  if (kind !== 'route') return { kind, name, value }
  const record = decodeRouteRecord(value)
  if (record.host !== name) throw new Error(`the record of ${record.host} stands under another name`)
  return { kind, name, record }
}

/** The revision of a record whose rest cannot be read: every format has it. */
function revisionIn(value = ''): number | undefined {
  try {
    const { revision } = JSON.parse(value) as { revision?: unknown }
    return Number.isSafeInteger(revision) ? (revision as number) : undefined
  } catch {
    return undefined
  }
}

function fieldOf(name: string, fields: readonly string[]): string | undefined {
  for (let at = 0; at + 1 < fields.length; at += 2) if (fields[at] === name) return fields[at + 1]
  return undefined
}

const MAX_REASON_CHARS = 200

/** A reason as it is told to operators. */
export function firstLine(error: unknown): string {
  return String((error as Error).message)
    .replaceAll(/\s+/g, ' ')
    .slice(0, MAX_REASON_CHARS)
}
