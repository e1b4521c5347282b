/**
 * The part of Postgres that publishing needs (control/ground/routing/publication.ts), as a database that can be restored from a
 * backup, failed over to a replica that lagged, or set back without a trace. The services' own transactions commit here.
 */
import { revisionFloor } from '../../shared/contracts/history.ts'
import { encodeRouteRecord, type RouteRecord } from '../../shared/contracts/route-record.ts'
import type {
  DatabaseHistory,
  FirstQuestions,
  OutboxRow,
  Publication,
  PublicationStore,
} from '../../control/ground/routing/publication.ts'
import { Contents, NOTHING_ENDED, type DropContent, type EndedFiles } from './content.ts'
import type { Change } from './scenario.ts'
import type { Process, World } from './world.ts'

export interface Row {
  readonly record: RouteRecord
  readonly revision: number
}

export interface State {
  readonly routes: Map<string, Row>
  outbox: OutboxRow[]
  readonly certificates: Map<string, string>
  history: { ordinal: number; id: string; life: number; removed: number }
  sequence: number
  outboxId: number
  /** Operations whose changes are part of this state. */
  readonly operations: Set<number>
  /** Admissions that were taken back, by host: each record that lets viewers in names all of them. */
  readonly ended: Map<string, readonly (readonly [string, number])[]>
  /** What drops consist of, and every version that they had, by host. */
  readonly contents: Map<string, DropContent>
  readonly versions: Map<string, readonly number[]>
}

export type Unrevised = RouteRecord extends infer Each
  ? Each extends RouteRecord
    ? Omit<Each, 'v' | 'revision'>
    : never
  : never

export interface Committed {
  readonly revision: number
  readonly history: string
  readonly ended: EndedFiles
}

/** Commits that a lagging replica may lack. */
const MAX_LAG = 6
/** Postgres writes sequences to its log ahead of what was handed out. */
const SEQUENCE_AHEAD = 32
const MAX_QUERY_MS = 4

export class SimulatedPostgres {
  up = true
  life = 1
  state: State = {
    routes: new Map(),
    outbox: [],
    certificates: new Map(),
    history: { ordinal: 1, id: 'first', life: 1, removed: 0 },
    sequence: revisionFloor(1),
    outboxId: 0,
    operations: new Set(),
    ended: new Map(),
    contents: new Map(),
    versions: new Map(),
  }
  readonly contents: Contents
  readonly #world: World
  #past: State[] = []
  /** Grows when every connection is lost; a transaction of an older one cannot commit. */
  #incarnation = 0
  #publicationLock: Promise<void> = Promise.resolve()
  #tableLock: Promise<void> = Promise.resolve()

  constructor(world: World, contents = new Contents()) {
    this.#world = world
    this.contents = contents
  }

  backUp(): State {
    return clone(this.state)
  }

  /** `traceless`: as if the files were put back. Otherwise the database lives another life afterwards. */
  restore(backup: State, traceless: boolean): void {
    this.state = clone(backup)
    this.#interrupt(traceless)
  }

  failOver(lag: number): number {
    const lost = Math.min(lag, this.#past.length)
    if (lost > 0) this.state = this.#past[this.#past.length - lost]!
    this.state = { ...clone(this.state), sequence: this.state.sequence + SEQUENCE_AHEAD }
    this.#interrupt(false)
    return lost
  }

  /** The old primary goes on beside the new one, for those who are still connected to it. */
  leaveBehind(): SimulatedPostgres {
    const old = new SimulatedPostgres(this.#world, this.contents)
    old.state = clone(this.state)
    old.life = this.life
    return old
  }

  #interrupt(traceless: boolean): void {
    this.#past = []
    this.#incarnation++
    this.#publicationLock = Promise.resolve()
    this.#tableLock = Promise.resolve()
    if (!traceless) this.life = ++this.#world.lives
  }

  /** A change of a service, with its outbox row. Returns once the caller knows that it is committed. */
  async commit(
    process: Process,
    operation: number,
    route: Unrevised,
    format: number,
    what?: Change,
  ): Promise<Committed> {
    const incarnation = this.#incarnation
    await this.#query(process, incarnation)
    await this.#tableLock
    if (this.#incarnation !== incarnation || !this.up) throw new Error('connection terminated')
    this.#remember()
    const { filled, ended } = withContent(this.state, this.contents, route, what)
    const revision = setRoute(this.state, filled, format)
    this.state.operations.add(operation)
    const history = this.state.history.id
    await this.#query(process, incarnation)
    return { revision, history, ended }
  }

  saveCertificate(name: string, sealed: string): void {
    if (this.up) this.state.certificates.set(name, sealed)
  }

  storeOf(process: Process): PublicationStore {
    return {
      locked: async (work, first) => {
        const before = this.#publicationLock
        const { promise, resolve } = Promise.withResolvers<void>()
        const incarnation = this.#incarnation
        this.#publicationLock = before.then(() => promise)
        const release = this.#untilGone(process, resolve)
        try {
          await before
          return await this.#transact(process, incarnation, work, first)
        } finally {
          release()
        }
      },
    }
  }

  /** A session ends with its process, and gives up its locks then. Returns how to give one up before. */
  #untilGone(process: Process, giveUp: () => void): () => void {
    let held = true
    const release = (): void => {
      held = false
      giveUp()
    }
    const watch = (): void => {
      if (held && process.alive) this.#world.after(WATCH_MS, watch)
      else if (held) release()
    }
    this.#world.after(WATCH_MS, watch)
    return release
  }

  async #transact<Result>(
    process: Process,
    incarnation: number,
    work: (publication: Publication) => Promise<Result>,
    { rows = 0, host }: FirstQuestions = {},
  ): Promise<Result> {
    let draft: State | undefined
    const deferred: ((state: State) => void)[] = []
    const table = Promise.withResolvers<void>()
    const read = (): State => draft ?? this.state
    const query = (): Promise<void> => this.#query(process, incarnation)
    const publicationOf = (history: DatabaseHistory): Publication => ({
      history,
      waiting: read().outbox.slice(0, rows),
      askedRevision: host === undefined ? undefined : read().routes.get(host)?.revision,
      beginHistory: async ({ ordinal, id }) => {
        await query()
        const before = this.#tableLock
        this.#tableLock = before.then(() => table.promise)
        this.#untilGone(process, table.resolve)
        await before
        draft = clone(this.state)
        const floor = revisionFloor(ordinal)
        const rows = [...draft.routes].toSorted(([, a], [, b]) => a.revision - b.revision)
        for (const [index, [host, { record }]] of rows.entries()) {
          const revision = floor + index + 1
          draft.routes.set(host, { record: { ...record, revision }, revision })
        }
        draft.sequence = floor + 1 + rows.length
        draft.outbox = draft.outbox.filter(({ kind }) => kind !== 'route')
        draft.history = { ordinal, id, life: this.life, removed: 0 }
      },
      outbox: async (limit) => {
        await query()
        return read().outbox.slice(0, limit)
      },
      deleteOutbox: (ids) => {
        deferred.push((state) => (state.outbox = state.outbox.filter(({ id }) => !ids.includes(id))))
      },
      routesAfter: async (host, limit) => {
        await query()
        return [...read().routes]
          .map(([name, { record }]) => ({ host: name, record }))
          .filter((row) => row.host > host)
          .toSorted((a, b) => (a.host < b.host ? -1 : 1))
          .slice(0, Math.min(limit, PAGE))
      },
      countRoutes: async () => {
        await query()
        return read().routes.size
      },
      revisionOf: async (host) => {
        await query()
        return read().routes.get(host)?.revision
      },
      withoutRoute: async (hosts) => {
        await query()
        return hosts.filter((host) => !read().routes.has(host))
      },
      announceAgain: async (hosts) => {
        const announced = hosts.filter((host) => read().routes.has(host))
        deferred.push((state) => {
          for (const host of hosts) {
            const row = state.routes.get(host)
            if (row) enqueue(state, host, JSON.stringify(row.record), row.revision)
          }
        })
        return announced
      },
      removeUnknown: async (hosts) => {
        await query()
        const unknown = hosts.filter((host) => !read().routes.has(host))
        deferred.push((state) => {
          for (const host of unknown) if (!state.routes.has(host)) setRoute(state, { kind: 'none', host }, 1)
          state.history = { ...state.history, removed: state.history.removed + unknown.length }
        })
        return unknown
      },
    })
    try {
      await query()
      const { ordinal, id, life, removed } = read().history
      const result = await work(publicationOf({ ordinal, id, ofThisLife: life === this.life, removedUnknown: removed }))
      await query()
      if (draft || deferred.length > 0) this.#remember()
      if (draft) this.state = draft
      for (const change of deferred) change(this.state)
      await query()
      return result
    } finally {
      table.resolve()
    }
  }

  #remember(): void {
    this.#past.push(clone(this.state))
    if (this.#past.length > MAX_LAG) this.#past.shift()
  }

  async #query(process: Process, incarnation: number): Promise<void> {
    const ms = this.#world.random.next() * MAX_QUERY_MS
    await new Promise<void>((resolve) => this.#world.after(ms, () => process.alive && resolve()))
    if (incarnation !== this.#incarnation || !this.up) throw new Error('connection terminated')
  }
}

const WATCH_MS = 400
const PAGE = 3

export function setRoute(state: State, route: Unrevised, format: number): number {
  const revision = ++state.sequence
  const record = { ...withEnded(state, route), v: format, revision } as unknown as RouteRecord
  state.routes.set(route.host, { record, revision })
  enqueue(state, route.host, encodeRouteRecord(record), revision)
  return revision
}

/** Under the lock of its row, as a service does it: what another change took back a moment before stays taken back. */
function withEnded(state: State, route: Unrevised): Unrevised {
  if (route.kind !== 'site' || route.viewers === undefined) return route
  const ended = new Map([...(state.ended.get(route.host) ?? []), ...route.viewers.ended])
  state.ended.set(route.host, [...ended])
  return { ...route, viewers: { ...route.viewers, ended: [...ended] } }
}

/** As publishing does it, under the same lock: what stays of former versions is decided by what the table has. */
function withContent(
  state: State,
  contents: Contents,
  route: Unrevised,
  what: Change | undefined,
): { filled: Unrevised; ended: EndedFiles } {
  if (route.kind !== 'site' || what === undefined) return { filled: route, ended: NOTHING_ENDED }
  const { host, version_number: version } = route
  const before = state.versions.get(host) ?? []
  const { content, ended } = contents.changed(what, version, state.contents.get(host), before)
  state.contents.set(host, content)
  state.versions.set(host, [...before, version])
  return { filled: route.state === 'live' ? { ...route, ...contents.recordOf(content) } : route, ended }
}

function enqueue(state: State, name: string, value: string, revision: number): void {
  state.outbox.push({ id: ++state.outboxId, kind: 'route', name, value, revision })
}

function clone(state: State): State {
  return {
    ...state,
    routes: new Map(state.routes),
    outbox: [...state.outbox],
    certificates: new Map(state.certificates),
    operations: new Set(state.operations),
    ended: new Map(state.ended),
    contents: new Map(state.contents),
    versions: new Map(state.versions),
  }
}
