/**
 * What must hold in every run:
 *
 *   visible     once a change is acknowledged, every edge that control waits for serves it or something later,
 *               and so does every edge that becomes level afterwards
 *   revoked     whoever an acknowledged change shut out is let in by no edge that owes it, nor by one that becomes level
 *               afterwards, whatever becomes of the database
 *   ended       files of former versions that an acknowledged change ended (a purge, a password, a takedown, a deletion)
 *               are served by no edge that owes it, nor by one that becomes level afterwards: not at the drop's address,
 *               and where their versions ended too, not at those of previews
 *   no way back a worker never serves an older record than it did
 *   no loss     a host that a worker served does not become unknown to it, nor does it become unsure of one that all
 *               edges can read, or while it follows
 *   honest      what was lost with a database that was set back is not acknowledged once a new history has begun
 *   level       when all is quiet, the snapshot and every replica say what the table says
 *   progress    when all is quiet, a change is acknowledged
 *
 * Where it looks away, and why:
 *
 *   - What was acknowledged and then lost with a database that was set back is owed by no one: Postgres is the truth. So
 *     operations that the table does not have any more raise no floor, lower those that they had raised, and are judged
 *     by `honest` alone.
 *   - After a restore without a trace (files put back, the same life) an operator begins a new history at the end. Such
 *     a database notices by itself what Redis says was published (`newest`); where Redis was lost in the same hour,
 *     nothing but the edges could tell, and one history's revisions are then given out twice.
 *     Admissions of such a history are judged no longer.
 *   - An edge that control cannot know of (it registered less than a quarter of a second ago, or Redis has lost the
 *     registration) owes nothing until it is level. One that is level has registered before.
 *   - An edge is unsure of a host, and says so to visitors, where it cannot read the newest record and may have missed
 *     another one before it. That shows no one anything old.
 *   - Certificates have no revisions: edges must hold what Redis holds, and Redis a certificate for every name that
 *     Postgres has one for. Which of two is newer no one can say after either was set back.
 */
import { admits, type Admission } from '../../shared/contracts/admission.ts'
import { decodeHistory, historyOfRevision } from '../../shared/contracts/history.ts'
import { keys } from '../../shared/redis/keys.ts'
import type { ServedRoute } from '../../edge/context.ts'
import type { EndedFiles } from './content.ts'
import type { SimulatedEdge } from './edge.ts'
import type { SimulatedPostgres } from './postgres.ts'
import { memberKey, type SimulatedRedis } from './redis.ts'
import type { World } from './world.ts'

export interface Violation {
  readonly promise: 'visible' | 'revoked' | 'ended' | 'no way back' | 'no loss' | 'honest' | 'level' | 'progress'
  readonly what: string
}

interface Acknowledged {
  readonly operation: number
  readonly host: string
  readonly revision: number
  readonly at: number
  /** Those whom it shut out. */
  readonly shutOut: readonly Admission[]
  /** What it ended. */
  readonly files: EndedFiles
}

/** That of every record that lets viewers in: only their own end, and the history, shuts them out. */
export const VIEWERS_GENERATION = 1

/** How old may be what control knew of an edge when it answered: a reply's way and a poll. */
const KNOWLEDGE_MS = 250

export class Checker {
  readonly violations: Violation[] = []
  onLevel: (edge: SimulatedEdge) => void = () => {}
  readonly #world: World
  readonly #redis: SimulatedRedis
  readonly #acknowledged: Acknowledged[] = []
  /** What each start of an edge has to serve at least, by edge id and host. */
  readonly #floors = new Map<string, Map<string, number>>()
  /** Whom each start of an edge must not let in any more, by edge id and host. */
  readonly #shutOut = new Map<string, Map<string, Set<Admission>>>()
  /** Changes that ended files at each start of an edge, by edge id and host. */
  readonly #ended = new Map<string, Map<string, Set<Acknowledged>>>()
  /** Who was let in at a host, by the records that were committed. */
  readonly #admitted = new Map<string, Admission[]>()
  /** Histories that were set back without a trace. */
  readonly #doubtful = new Set<number>()
  /** What each worker served last, by edge id, worker and host. */
  readonly #seen = new Map<string, { readonly revision: number; readonly at: number }>()
  /** Hosts that had a record which no edge can read: only of these may one be unsure. */
  readonly #onceUnreadable = new Set<string>()
  /** Redis lacks what it had confirmed, and no one has published everything again since. */
  #redisIsBehind = false
  /** When each history claimed Redis for itself. */
  readonly #claims = new Map<number, number>()
  /** When the database was set back and lost an operation with that; others were never part of it. */
  readonly #lostAt = new Map<number, number>()
  #setBackAt = 0
  #redisLostAt = 0

  constructor(world: World, redis: SimulatedRedis) {
    this.#world = world
    this.#redis = redis
    redis.onSet = (key, value) => {
      if (key === keys.epoch) this.#redisIsBehind = false
      const writer = key === keys.writer ? decodeHistory(value) : undefined
      if (writer && !this.#claims.has(writer.ordinal)) this.#claims.set(writer.ordinal, world.now)
    }
  }

  setBack(before: ReadonlySet<number>, after: ReadonlySet<number>): void {
    this.#setBackAt = this.#world.now
    for (const operation of before) if (!after.has(operation)) this.#lostAt.set(operation, this.#world.now)
    const owed = new Map<string, number>()
    for (const { operation, host, revision } of this.#acknowledged)
      if (after.has(operation)) owed.set(host, Math.max(owed.get(host) ?? 0, revision))
    for (const floors of this.#floors.values())
      for (const [host, floor] of floors) floors.set(host, Math.min(floor, owed.get(host) ?? 0))
  }

  /** From here on nobody can tell the revisions of this history apart. */
  setBackWithoutTrace(history: number): void {
    this.#doubtful.add(history)
  }

  /** A record was committed that lets someone in. */
  admitted(host: string, subject: string, revision: number): void {
    const admission = {
      siteId: host,
      subject,
      generation: VIEWERS_GENERATION,
      history: historyOfRevision(revision),
      endsAt: Number.POSITIVE_INFINITY,
    }
    this.#admitted.set(host, [...(this.#admitted.get(host) ?? []), admission])
  }

  #shut(edgeId: string, host: string, admissions: readonly Admission[]): void {
    const ofEdge = this.#shutOut.get(edgeId) ?? new Map<string, Set<Admission>>()
    this.#shutOut.set(edgeId, ofEdge)
    const ofHost = ofEdge.get(host) ?? new Set()
    ofEdge.set(host, ofHost)
    for (const admission of admissions) ofHost.add(admission)
  }

  #owe(edgeId: string, change: Acknowledged): void {
    this.#raise(edgeId, change.host, change.revision)
    this.#shut(edgeId, change.host, change.shutOut)
    if (change.files.atHost.length === 0) return
    const ofEdge = this.#ended.get(edgeId) ?? new Map<string, Set<Acknowledged>>()
    this.#ended.set(edgeId, ofEdge)
    ofEdge.set(change.host, (ofEdge.get(change.host) ?? new Set()).add(change))
  }

  /** Whether the database has not been set back since. */
  isSince(moment: number): boolean {
    return moment > this.#setBackAt
  }

  /**
   * `known`: the newest history that was committed and that an edge has heard of. A later claim is gone with Redis: a
   * database that was left behind, and is the first to find it empty, cannot hear of it from anyone.
   */
  redisLost(known: number): void {
    this.#redisIsBehind = true
    this.#redisLostAt = this.#world.now
    for (const ordinal of this.#claims.keys()) if (ordinal > known) this.#claims.delete(ordinal)
  }

  unreadable(host: string): void {
    this.#onceUnreadable.add(host)
  }

  #violate(promise: Violation['promise'], what: string): void {
    this.violations.push({ promise, what: `${Math.round(this.#world.now)} ms: ${what}` })
  }

  #raise(edgeId: string, host: string, revision: number): void {
    const floors = this.#floors.get(edgeId) ?? new Map<string, number>()
    this.#floors.set(edgeId, floors)
    floors.set(host, Math.max(floors.get(host) ?? 0, revision))
  }

  /** A change was answered without `pending`. */
  acknowledged(
    change: { operation: number; host: string; revision: number; ended: readonly string[]; files: EndedFiles },
    edges: readonly SimulatedEdge[],
    postgres: SimulatedPostgres,
  ): void {
    const { operation, host, revision } = change
    if (!postgres.state.operations.has(operation)) {
      const lostAt = this.#lostAt.get(operation) ?? this.#setBackAt
      if (this.#isSuperseded(revision, lostAt))
        this.#violate('honest', `operation ${operation} at ${host} was acknowledged after it was lost`)
      return
    }
    const shutOut = (this.#admitted.get(host) ?? []).filter(({ subject }) => change.ended.includes(subject))
    const owed = { operation, host, revision, at: this.#world.now, shutOut, files: change.files }
    this.#acknowledged.push(owed)
    for (const edge of edges)
      if (edge.isRunning && (this.#isWaitedFor(edge.id) || this.#isRegistered(edge))) this.#owe(edge.id, owed)
  }

  /** Control knows of it. */
  #isWaitedFor(edgeId: string): boolean {
    const { livesSince } = this.#redis
    const [position, listed] = [livesSince.get(keys.edge(edgeId)), livesSince.get(memberKey(keys.edges, edgeId))]
    if (position === undefined || listed === undefined || !this.#redis.hasLive(keys.edge(edgeId))) return false
    return Math.max(position, listed) + KNOWLEDGE_MS < this.#world.now
  }

  /** Control ought to know of it: it became level, and Redis has lost nothing since, nor while the edge was told so. */
  #isRegistered({ followingSince = 0 }: SimulatedEdge): boolean {
    return followingSince > this.#redisLostAt + KNOWLEDGE_MS && followingSince + KNOWLEDGE_MS < this.#world.now
  }

  /** Has a newer history begun since, long enough ago for everyone to know? */
  #isSuperseded(revision: number, since: number): boolean {
    return [...this.#claims].some(
      ([ordinal, at]) => ordinal > historyOfRevision(revision) && at > since && at + KNOWLEDGE_MS < this.#world.now,
    )
  }

  /** Called after every event. An edge that becomes level has to serve whatever was acknowledged before. */
  watch(edges: readonly SimulatedEdge[], postgres: SimulatedPostgres): void {
    for (const edge of edges) {
      const following = edge.isFollowing()
      if (following && edge.followingSince === undefined) {
        edge.followingSince = this.#world.now
        this.onLevel(edge)
        if (this.#redisIsBehind) continue
        for (const change of this.#acknowledged)
          if (change.at + KNOWLEDGE_MS < this.#world.now && postgres.state.operations.has(change.operation))
            this.#owe(edge.id, change)
      } else if (!following) edge.followingSince = undefined
    }
  }

  /** `table`: where the visit follows an acknowledgement, what the table has for the host. */
  visited(edge: SimulatedEdge, worker: number, host: string, route: ServedRoute | undefined, table?: number): void {
    const place = `${edge.id} ${worker} ${host}`
    const last = this.#seen.get(place) ?? { revision: 0, at: 0 }
    if (route?.kind === 'unsure') {
      if (!this.#onceUnreadable.has(host)) this.#violate('no loss', `${place} is unsure of what can be read`)
      if (last.revision > 0 && (edge.followingSince ?? this.#world.now) < last.at)
        this.#violate('no loss', `${place} became unsure without having missed anything`)
      return
    }
    if (route?.kind === 'site')
      for (const admission of this.#shutOut.get(edge.id)?.get(host) ?? [])
        if (!this.#doubtful.has(admission.history) && admits(route, admission, this.#world.now))
          this.#violate('revoked', `${place} lets ${admission.subject} in at revision ${route.revision}`)
    const revision = route?.revision ?? 0
    const floor = this.#floors.get(edge.id)?.get(host) ?? 0
    if (table !== undefined && floor > 0 && revision > table)
      this.#violate('visible', `${edge.id} serves ${host} at revision ${revision}, of a history that was lost`)
    if (revision < floor)
      this.#violate('visible', `${edge.id} serves ${host} at revision ${revision}, acknowledged was ${floor}`)
    if (last.revision > 0 && route === undefined) this.#violate('no loss', `${place} became unknown`)
    else if (revision < last.revision)
      this.#violate('no way back', `${place} went from revision ${last.revision} to ${revision}`)
    this.#seen.set(place, { revision, at: this.#world.now })
  }

  /** The same visitor asks for what there is, and for what is over. */
  looked(edge: SimulatedEdge, worker: number, host: string, route: ServedRoute | undefined): void {
    if (route?.kind !== 'site') return
    edge.finds(worker, host, route.version_number, true)
    for (const { operation, revision, files } of this.#ended.get(edge.id)?.get(host) ?? []) {
      if (this.#lostAt.has(operation) || this.#doubtful.has(historyOfRevision(revision))) continue
      for (const [versions, preview] of [[files.atHost, false] as const, [files.atPreviews, true] as const])
        for (const version of versions)
          if (edge.finds(worker, host, version, preview))
            this.#violate(
              'ended',
              `${edge.id} ${worker} ${host} has ${preview ? 'the preview' : 'a file'} of ${version}`,
            )
    }
  }

  /** What is not level yet. `unreadable`: hosts whose newest record no edge can read. */
  unlevel(edges: readonly SimulatedEdge[], postgres: SimulatedPostgres, unreadable: ReadonlySet<string>): string[] {
    const { routes, outbox } = postgres.state
    const wrong: string[] = []
    if (outbox.length > 0) wrong.push(`${outbox.length} rows wait in the outbox`)
    const snapshot = this.#redis.peekHash(keys.routes)
    for (const [host, { revision }] of routes) {
      const published = (JSON.parse(snapshot.get(host) ?? '{}') as { revision?: number }).revision
      if (published !== revision) wrong.push(`the snapshot has ${host} at ${published}, the table at ${revision}`)
    }
    // Redis may hold a newer one than a database that was set back, and the edges go by Redis.
    const certificates = this.#redis.peekHash(keys.certificates)
    for (const name of postgres.state.certificates.keys())
      if (!certificates.has(name)) wrong.push(`the certificate of ${name} is not in Redis`)
    for (const edge of edges) {
      if (!edge.isFollowing()) wrong.push(`${edge.id} does not follow`)
      if (!edge.isRunning) continue
      for (const host of new Set([...routes.keys(), ...edge.hosts()])) {
        const route = edge.replicaRoute(host)
        if (route?.kind === 'unsure' && unreadable.has(host)) continue
        const held = route?.revision
        const table = routes.get(host)?.revision
        // A record that says "nothing here" is to a visitor what no record is: no one has to be told of it.
        if (table === undefined && route?.kind === 'none') continue
        // What no edge can read goes on as it was, which is never ahead of the table.
        const wanted = unreadable.has(host) && (held ?? 0) < table! ? held : table
        if (held !== wanted) wrong.push(`${edge.id} has ${host} at ${held}, the table at ${wanted}`)
        for (let worker = 0; worker < edge.workers; worker++) {
          const served = edge.visit(host, worker)?.revision
          if (served !== wanted)
            wrong.push(`${edge.id}/${worker} serves ${host} at ${served}, the table is at ${wanted}`)
        }
      }
      for (const [name, sealed] of certificates)
        if (edge.certificate(name) !== sealed) wrong.push(`${edge.id} lacks the certificate of ${name}`)
    }
    return wrong
  }

  notLevel(what: readonly string[]): void {
    for (const each of what) this.#violate('level', each)
  }

  stuck(what: string): void {
    this.#violate('progress', what)
  }
}
