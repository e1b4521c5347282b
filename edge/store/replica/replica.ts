/**
 * This machine's copy of everything the edges are told: written by the primary process alone, read by all workers. It is
 * the only thing that a visitor's request reads routes from.
 */
import { decodeHistory, encodeHistory, historyOfRevision, type History } from '../../../shared/contracts/history.ts'
import { isHostname } from '../../../shared/http/hosts.ts'
import type { RouteRecord } from '../../../shared/contracts/route-record.ts'
import { START_OF_LOG, type StreamMessage } from '../../../shared/redis/stream.ts'
import type { ServedRoute } from '../../context.ts'
import { openLmdbStorage, type ReplicaStorage, type Table } from './replica-storage.ts'
import { fromStored, manifestOf, revisionOf, STORED_FORMAT, toStored } from './stored-route.ts'

/** How far this copy has come. */
export interface Progress {
  /** The snapshot that it was built from; empty: of a Redis whose snapshot was not complete. */
  readonly epoch: string
  /** The log position in that life of Redis. */
  readonly position: string
}

export type Kind = StreamMessage['kind']
/** What is kept by its name beside the routes. */
type StoredKind = Exclude<Kind, 'route' | 'threads'>

/** One thing that changed; without a name: anything of any kind may have. */
export interface Change {
  readonly kind: Kind
  readonly name: string
}

export interface Applied {
  /** What really changed. */
  readonly changes: readonly Change[]
  /** Routes that were not taken, because a newer record of their host is held. */
  readonly outdated: readonly Refusal[]
}

/** What became of an entry: `held` was there already, `outdated` is older than what is held. */
type Outcome = 'taken' | 'held' | 'passed over' | 'outdated'

/** A message whose content has been read and found good. */
export type Entry =
  | RouteEntry
  /** An empty value removes. */
  | { readonly kind: Exclude<Kind, 'route'>; readonly name: string; readonly value: string }

interface RouteEntry {
  readonly kind: 'route'
  readonly name: string
  readonly record: RouteRecord
}

/** Something that could not be used, and why: the name goes on being served as it was. */
export interface Refusal {
  /** Perhaps one that this release does not know. */
  readonly kind: string
  readonly name: string
  readonly reason: string
  /** The record's revision, where that much could be read. */
  readonly revision?: number | undefined
}

/** A certificate that can be read says nothing about the route of the same name. */
export function refusalKey({ kind, name }: { readonly kind: string; readonly name: string }): string {
  return `${kind} ${name}`
}

/**
 * Kept, the newest: as many as are told to control. More than that is not one bad host but a blob store that is away, or a
 * release that cannot read the other's records. The edge then says that there are more, and looks for them.
 */
export const MAX_REFUSALS = 1000

/** LMDB refuses longer keys; a host has at most 253 bytes, a token is short. */
export const MAX_NAME_BYTES = 500

export interface Replica {
  /** What a host stands for, or undefined when it was never heard of. */
  route(host: string): ServedRoute | undefined
  /** The manifest of a version that the host's site retains. */
  manifestOf(host: string, versionNumber: number): string | undefined
  value(kind: StoredKind, name: string): string | undefined
  entries(kind: StoredKind): Iterable<{ readonly name: string; readonly value: string }>
  hosts(): Iterable<string>
  /** Undefined until a whole snapshot has been applied once: until then "not found" is not known. */
  snapshotEpoch(): string | undefined
  progress(): Progress
  /** The newest history of which anything is held; undefined: of a release without histories. */
  history(): History | undefined
  /**
   * By kind and name (`refusalKey`), the newest last; kept with the rest, so that an edge that was upgraded reads again
   * what the one before could not.
   */
  refusals(): ReadonlyMap<string, string>
  /** How often refusals were forgotten because there were too many; 0: `refusals` names them all. */
  forgotten(): number
  /**
   * Ends a search of the snapshot that began when so much was forgotten, with the routes that it found refused. Where
   * they and those that are known are not too many, and nothing was forgotten meanwhile, these are all.
   */
  remember(found: readonly Refusal[], forgotten: number): Promise<void>
  /** A reader sees the newest commit of the primary from here on. */
  refresh(): void
  /**
   * Applies entries and the progress they stand for in one transaction; returns what became of them.
   * An older revision of a route never replaces a newer one, and nothing of an older history is taken at all.
   */
  apply(entries: readonly Entry[], progress: Partial<Progress>, refused?: readonly Refusal[]): Promise<Applied>
  /**
   * Before the first record of a history is applied: should Redis and Postgres both lose it while we have read half of
   * it, we can say what we hold, and nothing older is taken for its successor.
   */
  adopt(history: History): Promise<void>
  /**
   * Ends a reconciliation with everything that could not be used in it. A host goes on as it was if this very record was
   * refused when it came through the log: nothing was missed before it. Any other host is unsure from here on, until a
   * record arrives that can be used.
   */
  completeSnapshot(progress: Progress, refused: readonly Refusal[]): Promise<void>
  /** Touches every page that reading and writing need; throws or ends the process where one is damaged. */
  readAll(): void
  close(): Promise<void>
}

export function openReplica(dir: string, options: { readOnly: boolean }): Replica {
  return createReplica(openLmdbStorage(dir, options), options)
}

export function createReplica(
  storage: ReplicaStorage,
  options: { readonly readOnly: boolean; readonly maxRefusals?: number | undefined },
): Replica {
  const { routes, meta, unsure } = storage
  const maxRefusals = options.maxRefusals ?? MAX_REFUSALS
  if (!options.readOnly && meta.get('format') !== STORED_FORMAT) {
    routes.clear()
    meta.clear()
    unsure.clear()
    meta.putNow('format', STORED_FORMAT)
  }
  return {
    route: (host) => routeOf(storage, host),
    manifestOf(host, versionNumber) {
      const stored = routes.get(host)
      return stored && manifestOf(stored, versionNumber)
    },
    value: (kind, name) => tableOf(storage, kind).get(name),
    *entries(kind) {
      for (const { key, value } of tableOf(storage, kind).entries()) yield { name: key, value }
    },
    hosts: () => routes.keys(),
    snapshotEpoch: () => meta.get('snapshot'),
    progress: () => ({ epoch: meta.get('epoch') ?? '', position: meta.get('position') ?? START_OF_LOG }),
    history: () => historyOf(storage),
    refusals: () => new Map(keptRefusals(storage).map(([key, reason]) => [key, reason])),
    forgotten: () => forgottenIn(storage),
    async remember(found, forgotten) {
      await storage.transaction(() => {
        if (forgottenIn(storage) === forgotten) rememberAll(storage, found, maxRefusals)
      })
    },
    refresh: () => storage.refresh(),
    apply: (entries, progress, news = []) =>
      storage.transaction(() => {
        const { served, ...applied } = writeAll(storage, entries)
        noteRefusals(storage, served, news, maxRefusals)
        noteProgress(storage, progress)
        return applied
      }),
    async adopt(adopted) {
      await storage.transaction(() => meta.put('history', encodeHistory(adopted)))
    },
    async completeSnapshot(progress, inSnapshot) {
      await storage.transaction(() => {
        noteProgress(storage, progress)
        meta.put('snapshot', progress.epoch)
        markUnsure(storage, inSnapshot)
        meta.remove('forgotten')
        putRefusals(storage, inSnapshot.map(keptOf), maxRefusals)
      })
    },
    readAll() {
      for (const { key } of routes.entries()) void key
      const { certificates, domains, challenges } = storage
      for (const table of [meta, unsure, certificates, domains, challenges])
        for (const { key } of table.entries()) void key
      meta.putNow('format', STORED_FORMAT)
    },
    close: () => storage.close(),
  }
}

function tableOf(storage: ReplicaStorage, kind: StoredKind): Table<string> {
  switch (kind) {
    case 'certificate':
      return storage.certificates
    case 'domain':
      return storage.domains
    case 'challenge':
      return storage.challenges
    default:
      return kind satisfies never
  }
}

function historyOf({ meta }: ReplicaStorage): History | undefined {
  return decodeHistory(meta.get('history'))
}

function routeOf(storage: ReplicaStorage, host: string): ServedRoute | undefined {
  const { routes, unsure } = storage
  if (unsure.get(host) !== undefined && unsureFrom(storage, host, heldRevision(storage, host)) !== undefined)
    return { kind: 'unsure', host, revision: 0 }
  const stored = routes.get(host)
  return stored && fromStored(host, stored)
}

function heldRevision({ routes }: ReplicaStorage, host: string): number | undefined {
  const stored = routes.get(host)
  return stored && revisionOf(stored)
}

/** The revision from which on a record of an unsure host counts. A release before this one leaves marks behind. */
function unsureFrom({ unsure }: ReplicaStorage, host: string, held: number | undefined): number | undefined {
  const mark = unsure.get(host)
  return mark === undefined || Number(mark) < (held ?? 0) ? undefined : Number(mark)
}

function writeAll(storage: ReplicaStorage, entries: readonly Entry[]): Applied & { readonly served: readonly Entry[] } {
  const oldest = historyOf(storage)?.ordinal ?? 0
  const changes: Change[] = []
  const outdated: Refusal[] = []
  const served: Entry[] = []
  for (const entry of entries) {
    const outcome = write(storage, entry, oldest)
    if (outcome === 'taken') changes.push({ kind: entry.kind, name: entry.name })
    if (outcome === 'taken' || outcome === 'held') served.push(entry)
    if (outcome === 'outdated' && entry.kind === 'route') outdated.push(outdatedOf(storage, entry))
  }
  return { changes, outdated, served }
}

function write(storage: ReplicaStorage, entry: Entry, oldest: number): Outcome {
  const { routes, unsure } = storage
  const { kind, name } = entry
  if (kind === 'route') {
    const held = heldRevision(storage, name)
    const { revision } = entry.record
    const doubt = unsureFrom(storage, name, held)
    const wanted = doubt ?? (held ?? 0) + 1
    if (historyOfRevision(revision) < oldest || revision < wanted) {
      if (revision < (held ?? 0)) return 'outdated'
      return revision === held && doubt === undefined ? 'held' : 'passed over'
    }
    routes.put(name, toStored(entry.record))
    if (unsure.get(name) !== undefined) unsure.remove(name)
    return 'taken'
  }
  // News for open tabs: workers are told, and nothing is kept.
  if (kind === 'threads') return 'taken'
  if (entry.value === '') tableOf(storage, kind).remove(name)
  else tableOf(storage, kind).put(name, entry.value)
  return 'taken'
}

function outdatedOf(storage: ReplicaStorage, { kind, name, record: { revision } }: RouteEntry): Refusal {
  return { kind, name, revision, reason: `revision ${heldRevision(storage, name)} is held here, which is newer` }
}

function noteProgress({ meta }: ReplicaStorage, progress: Partial<Progress>): void {
  for (const [key, value] of Object.entries(progress)) meta.put(key, value)
}

function keptRefusals({ meta }: ReplicaStorage): KeptRefusal[] {
  return JSON.parse(meta.get('refused') ?? '[]') as KeptRefusal[]
}

function putRefusals(storage: ReplicaStorage, all: readonly KeptRefusal[], max: number): void {
  const tooMany = Math.max(0, all.length - max)
  storage.meta.put('refused', JSON.stringify(all.slice(tooMany)))
  if (tooMany > 0) storage.meta.put('forgotten', String(forgottenIn(storage) + 1))
}

function forgottenIn({ meta }: ReplicaStorage): number {
  return Number(meta.get('forgotten') ?? 0)
}

/** What a search found stands behind all others, and without its revision: something may have been missed before it. */
function rememberAll(storage: ReplicaStorage, found: readonly Refusal[], max: number): void {
  const known = keptRefusals(storage)
  const names = new Set(known.map(([key]) => key))
  const others = found.filter(
    (refusal) =>
      !names.has(refusalKey(refusal)) && (refusal.revision ?? Infinity) > (heldRevision(storage, refusal.name) ?? 0),
  )
  if (others.length + known.length > max) return
  putRefusals(storage, [...others.map((refusal) => keptOf({ ...refusal, revision: undefined })), ...known], max)
  storage.meta.remove('forgotten')
}

/** A name whose newest record is served is no longer refused. An entry that was passed over says nothing about its name. */
function noteRefusals(storage: ReplicaStorage, served: readonly Entry[], news: readonly Refusal[], max: number): void {
  const known = new Map(keptRefusals(storage).map((each) => [each[0], each]))
  if (known.size === 0 && news.length === 0) return
  // The log of a Redis whose snapshot is not complete may begin behind something that was lost.
  const missedNothing = (storage.meta.get('epoch') ?? '') !== ''
  for (const entry of served) known.delete(refusalKey(entry))
  for (const refusal of news) {
    // The newest stand last.
    known.delete(refusalKey(refusal))
    known.set(refusalKey(refusal), keptOf(missedNothing ? refusal : { ...refusal, revision: undefined }))
  }
  putRefusals(storage, [...known.values()], max)
}

/** A record of a newer history says nothing: that history may be lost, and its numbers would be waited for in vain. */
function revisionInOurs(storage: ReplicaStorage, { revision }: Refusal): number | undefined {
  const newest = historyOf(storage)?.ordinal ?? Infinity
  return revision === undefined || historyOfRevision(revision) > newest ? undefined : revision
}

/** Replaces the marks of the snapshot before. */
function markUnsure(storage: ReplicaStorage, inSnapshot: readonly Refusal[]): void {
  const { unsure } = storage
  const before = new Map(keptRefusals(storage).map((each) => [each[0], each]))
  const marks = inSnapshot.flatMap((refusal) => {
    const { kind, name: host } = refusal
    // No visitor asks for anything else.
    if (kind !== 'route' || !isHostname(host)) return []
    const held = heldRevision(storage, host)
    const revision = revisionInOurs(storage, refusal)
    const isServed = revision !== undefined && held !== undefined && revision <= held
    const known = before.get(refusalKey(refusal))
    const isSame = known !== undefined && known[2] === refusal.revision
    const isNextToHeld = isSame && unsureFrom(storage, host, held) === undefined
    return isServed || isNextToHeld ? [] : [{ host, from: revision ?? held ?? 0 }]
  })
  for (const host of [...unsure.keys()]) unsure.remove(host)
  for (const { host, from } of marks) unsure.put(host, String(from))
}

/**
 * A refusal as it is stored, by `refusalKey`. The revision says that nothing was missed before it; releases before this one
 * keep none, and skip it.
 */
type KeptRefusal = readonly [key: string, reason: string, revision?: number]

function keptOf(refusal: Refusal): KeptRefusal {
  const { reason, revision } = refusal
  return revision === undefined ? [refusalKey(refusal), reason] : [refusalKey(refusal), reason, revision]
}
