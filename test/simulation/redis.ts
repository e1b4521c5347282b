/**
 * A Redis for the simulation: the commands of `shared/redis/commands.ts`, replication that lags behind what was confirmed,
 * a log that is trimmed after a few entries, and everything that can happen to a server.
 */
import { compareStreamIds, START_OF_LOG } from '../../shared/redis/stream.ts'
import type { StreamEntry } from '../../shared/redis/commands.ts'
import type { World } from './world.ts'

export type Command = readonly [name: string, ...args: (string | number)[]]

/** What belongs to one connection. */
export interface Session {
  watched: Map<string, number>
  open: boolean
}

interface Reader {
  readonly session: Session
  readonly after: string
  readonly count: number
  readonly answer: (reply: unknown) => void
}

export class RedisError extends Error {
  override readonly name = 'ReplyError'
}

/** Confirmed writes that a failover may take back. */
const MAX_LAG = 12

export class SimulatedRedis {
  up = true
  life = 1
  /** Entries that trimming leaves. */
  readonly logLength: number
  readonly #world: World
  readonly #strings = new Map<string, { value: string; expiresAt: number }>()
  readonly #hashes = new Map<string, Map<string, string>>()
  readonly #sets = new Map<string, Set<string>>()
  #log: StreamEntry[] = []
  #lastId = START_OF_LOG
  #clockSkewMs = 0
  #versions = new Map<string, number>()
  #undo: (() => void)[] = []
  /**
   * What the transaction under way has written: replicas get all of it or nothing. Seen with Redis 7.0: where the stream to
   * a replica was cut anywhere between MULTI and EXEC, the promoted replica had no key of it.
   */
  #together: (() => void)[] | undefined
  #readers = new Set<Reader>()
  /** Chance that one command inside a transaction is refused (no memory left). */
  refusals = 0
  /** Since when each key, and each member of a set, is there without a break: which edges count, and since when. */
  readonly livesSince = new Map<string, number>()
  /** For the checker, and for the story. */
  onSet: (key: string, value: string) => void = () => {}
  onWrite: (key: string, value: string) => void = () => {}

  constructor(world: World, logLength: number) {
    this.#world = world
    this.logLength = logLength
  }

  flush(): void {
    for (const key of [...this.#strings.keys(), ...this.#hashes.keys(), ...this.#sets.keys(), LOG_KEY]) this.#touch(key)
    this.#strings.clear()
    this.#hashes.clear()
    this.#sets.clear()
    this.livesSince.clear()
    this.#log = []
    this.#lastId = START_OF_LOG
    this.#undo = []
  }

  /** A replica is promoted: it lacks the newest writes, and its clock may be behind. */
  failOver(lost: number, clockSkewMs: number): number {
    let count = 0
    for (; count < lost && this.#undo.length > 0; count++) this.#undo.pop()!()
    this.#undo = []
    this.life++
    this.#clockSkewMs = clockSkewMs
    return count
  }

  hasLive(key: string): boolean {
    return this.#string(key) !== null
  }

  peekHash(key: string): ReadonlyMap<string, string> {
    return this.#hashes.get(key) ?? new Map()
  }

  peek(key: string): string | null {
    return this.#string(key)
  }

  /** Answers at once, or later where the command blocks. Throws what the server would say. */
  execute(session: Session, command: Command, answer: (reply: unknown) => void): void {
    const [name, ...args] = command
    if (name === 'xread') return this.#read(session, args, answer)
    if (name === 'watch') {
      // A key that is watched already goes on as it is.
      for (const key of args.map(String))
        session.watched.set(key, session.watched.get(key) ?? this.#versions.get(key) ?? 0)
      return answer('OK')
    }
    if (name === 'unwatch') {
      session.watched.clear()
      return answer('OK')
    }
    answer(this.#run(name, args))
  }

  transact(session: Session, commands: readonly Command[]): [Error | null, unknown][] | null {
    const watched = session.watched
    session.watched = new Map()
    for (const [key, version] of watched) if ((this.#versions.get(key) ?? 0) !== version) return null
    const written: (() => void)[] = (this.#together = [])
    const results = commands.map(([name, ...args]): [Error | null, unknown] => {
      const isWrite = name !== 'get'
      if (isWrite && this.refusals > 0 && this.#world.random.chance(this.refusals))
        return [new RedisError('OOM command not allowed'), undefined]
      return [null, this.#run(name, args)]
    })
    this.#together = undefined
    if (written.length > 0)
      this.#remember(() => {
        for (const takeBack of written.toReversed()) takeBack()
      })
    return results
  }

  forget(session: Session): void {
    for (const reader of this.#readers) if (reader.session === session) this.#readers.delete(reader)
  }

  #touch(key: string): void {
    this.#versions.set(key, (this.#versions.get(key) ?? 0) + 1)
  }

  /** A write that a failover may take back. */
  #wrote(key: string, undo: () => void): void {
    this.#touch(key)
    const takeBack = (): void => {
      undo()
      this.#touch(key)
    }
    if (this.#together) this.#together.push(takeBack)
    else this.#remember(takeBack)
  }

  #remember(takeBack: () => void): void {
    this.#undo.push(takeBack)
    if (this.#undo.length > MAX_LAG) this.#undo.shift()
  }

  #string(key: string): string | null {
    const found = this.#strings.get(key)
    if (found === undefined || found.expiresAt <= this.#world.now) {
      this.livesSince.delete(key)
      return null
    }
    return found.value
  }

  #run(name: string, args: readonly (string | number)[]): unknown {
    const key = String(args[0])
    const texts = args.slice(1).map(String)
    switch (name) {
      case 'get':
        return this.#string(key)
      case 'mget':
        return args.map((each) => this.#string(String(each)))
      case 'set':
        return this.#set(key, texts[0]!, texts[1] === 'PX' ? Number(texts[2]) : Number.POSITIVE_INFINITY)
      case 'del':
        return this.#del(key)
      case 'smembers':
        return [...(this.#sets.get(key) ?? [])]
      case 'sadd':
        return this.#sadd(key, texts)
      case 'srem':
        return this.#srem(key, texts)
      case 'hget':
        return this.#hashes.get(key)?.get(texts[0]!) ?? null
      case 'hset':
        return this.#hset(key, texts)
      case 'hsetnx':
        return this.#hashes.get(key)?.has(texts[0]!) ? 0 : this.#hset(key, texts)
      case 'hscan':
        return this.#hscan(key, texts[0]!)
      case 'xadd':
        return this.#xadd(texts)
      case 'xrange':
        return this.#between(texts[0]!, texts[1]!).slice(0, Number(texts[3]))
      case 'xrevrange':
        return this.#between(texts[1]!, texts[0]!).toReversed().slice(0, Number(texts[3]))
      // No one hears it: a hint that gets lost must not matter.
      case 'publish':
        return 0
      case 'eval':
        return `role:master\r\nmaster_replid:life${this.life}\r\n`
      default:
        throw new RedisError(`unknown command ${name}`)
    }
  }

  #set(key: string, value: string, ttlMs: number): 'OK' {
    const before = this.#strings.get(key)
    if (this.#string(key) === null) this.livesSince.set(key, this.#world.now)
    this.#strings.set(key, { value, expiresAt: this.#world.now + ttlMs })
    this.#wrote(key, () => (before ? this.#strings.set(key, before) : this.#strings.delete(key)))
    this.onSet(key, value)
    this.onWrite(key, value)
    return 'OK'
  }

  #del(key: string): number {
    const before = this.#strings.get(key)
    if (!before) return 0
    this.#strings.delete(key)
    this.livesSince.delete(key)
    this.#wrote(key, () => this.#strings.set(key, before))
    return 1
  }

  #sadd(key: string, members: readonly string[]): number {
    const added = members.filter((member) => !this.#sets.get(key)?.has(member))
    this.#add(key, added)
    if (added.length > 0) this.#wrote(key, () => added.forEach((member) => this.#take(key, member)))
    return added.length
  }

  #srem(key: string, members: readonly string[]): number {
    const removed = members.filter((member) => this.#sets.get(key)?.has(member))
    for (const member of removed) this.#take(key, member)
    if (removed.length > 0) this.#wrote(key, () => this.#add(key, removed))
    return removed.length
  }

  #add(key: string, members: readonly string[]): void {
    const set = this.#sets.get(key) ?? new Set()
    this.#sets.set(key, set)
    for (const member of members) {
      set.add(member)
      this.livesSince.set(memberKey(key, member), this.#world.now)
    }
  }

  #take(key: string, member: string): void {
    this.#sets.get(key)?.delete(member)
    this.livesSince.delete(memberKey(key, member))
  }

  #hset(key: string, pairs: readonly string[]): number {
    const hash = this.#hashes.get(key) ?? new Map<string, string>()
    this.#hashes.set(key, hash)
    for (let at = 0; at + 1 < pairs.length; at += 2) {
      const [field, value] = [pairs[at]!, pairs[at + 1]!]
      const before = hash.get(field)
      hash.set(field, value)
      this.#wrote(key, () => (before === undefined ? hash.delete(field) : hash.set(field, before)))
    }
    return pairs.length / 2
  }

  /** In two pages, so that something can change between them; what is there all the time is in one of them. */
  #hscan(key: string, cursor: string): [string, string[]] {
    const all = [...(this.#hashes.get(key) ?? [])]
    const page = all.filter(([field]) => isOnFirstPage(field) === (cursor === '0'))
    return [cursor === '0' ? '1' : '0', page.flat()]
  }

  #xadd(args: readonly string[]): string {
    const star = args.indexOf('*')
    const clock = Math.max(0, Math.round(this.#world.now + this.#clockSkewMs))
    const [lastMs = '0', lastSeq = '0'] = this.#lastId.split('-')
    const id = clock > Number(lastMs) ? `${clock}-0` : `${lastMs}-${Number(lastSeq) + 1}`
    const [before, beforeId] = [this.#log, this.#lastId]
    this.#log = [...before, [id, args.slice(star + 1)] as StreamEntry].slice(-this.logLength)
    this.#lastId = id
    this.#wrote(LOG_KEY, () => {
      this.#log = before
      this.#lastId = beforeId
    })
    for (const reader of this.#readers) this.#serve(reader)
    return id
  }

  #between(from: string, to: string): StreamEntry[] {
    return this.#log.filter(
      ([id]) => (from === '-' || compareStreamIds(id, from) >= 0) && (to === '+' || compareStreamIds(id, to) <= 0),
    )
  }

  #read(session: Session, args: readonly (string | number)[], answer: (reply: unknown) => void): void {
    const reader: Reader = { session, after: String(args.at(-1)), count: Number(args[1]), answer }
    this.#readers.add(reader)
    this.#serve(reader)
    if (!this.#readers.has(reader)) return
    this.#world.after(Number(args[3]), () => {
      if (this.#readers.delete(reader)) answer(null)
    })
  }

  #serve(reader: Reader): void {
    const news = this.#log.filter(([id]) => compareStreamIds(id, reader.after) > 0).slice(0, reader.count)
    if (news.length === 0) return
    this.#readers.delete(reader)
    reader.answer([['log', news]])
  }
}

const LOG_KEY = 'log'

export function memberKey(key: string, member: string): string {
  return `${key} ${member}`
}

function isOnFirstPage(field: string): boolean {
  return [...field].reduce((sum, character) => sum + character.charCodeAt(0), 0) % 2 === 0
}
