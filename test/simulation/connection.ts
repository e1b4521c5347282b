/**
 * A connection to the simulated Redis, as the follower and the publisher use one: commands arrive in order after a while
 * and so do replies; it can break with commands under way, go silent without breaking, and be made again.
 */
import type { RedisConnection, RedisTransaction, WatchingConnection } from '../../shared/redis/commands.ts'
import type { Command, Session, SimulatedRedis } from './redis.ts'
import type { Process, World } from './world.ts'

export interface ConnectionOptions {
  readonly world: World
  readonly redis: SimulatedRedis
  readonly process: Process
  /** Connects again by itself, as control's connections do. */
  readonly reconnects: boolean
  readonly timeoutMs: number
}

export interface SimulatedConnection extends RedisConnection, WatchingConnection {
  /** The network takes it away: what was under way may or may not have arrived. */
  cut(): void
  /** Nothing arrives any more, in either direction, and no one is told. */
  silence(): void
}

interface Pending {
  readonly run: (session: Session, answer: (reply: unknown) => void) => void
  readonly resolve: (reply: unknown) => void
  readonly reject: (error: Error) => void
  settled: boolean
}

const MAX_LATENCY_MS = 12
const RECONNECT_MS = 60

export function openConnection({
  world,
  redis,
  process,
  reconnects,
  timeoutMs,
}: ConnectionOptions): SimulatedConnection {
  let status = 'wait'
  let session: Session = { open: false, watched: new Map() }
  let silent = false
  let arrivesAt = 0
  let repliesAt = 0
  let batch: Pending[] | undefined
  const pending = new Set<Pending>()
  const listeners: { event: string; listener: () => void }[] = []
  const closeListeners: (() => void)[] = []

  const emit = (event: string): void => {
    for (const each of listeners.splice(0))
      if (each.event === event) each.listener()
      else listeners.push(each)
  }
  const latency = (): number => 0.1 + world.random.next() * (world.random.chance(0.05) ? 5 : 1) * MAX_LATENCY_MS

  function settle(command: Pending, act: () => void): void {
    if (command.settled || !process.alive) return
    command.settled = true
    pending.delete(command)
    act()
  }

  function close(error: Error): void {
    session.open = false
    redis.forget(session)
    status = 'end'
    silent = false
    for (const command of pending) settle(command, () => command.reject(error))
    emit('close')
    for (const listener of closeListeners) listener()
    if (reconnects && process.alive) world.after(RECONNECT_MS, () => void connect().catch(() => {}))
  }

  async function connect(): Promise<void> {
    if (!process.alive || status === 'ready') return
    status = 'connecting'
    await new Promise<void>((resolve) => world.after(latency(), () => process.alive && resolve()))
    if (!redis.up) {
      status = 'end'
      if (reconnects) world.after(RECONNECT_MS, () => void connect().catch(() => {}))
      throw new Error('connect ECONNREFUSED')
    }
    session = { open: true, watched: new Map() }
    arrivesAt = repliesAt = world.now
    status = 'ready'
    emit('ready')
  }

  /** Commands of one moment travel together. */
  function send(run: Pending['run']): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (status !== 'ready') return reject(new Error('Connection is closed.'))
      const command: Pending = { run, resolve, reject, settled: false }
      pending.add(command)
      if (batch) return void batch.push(command)
      const sent = (batch = [command])
      const own = session
      queueMicrotask(() => (batch = undefined))
      arrivesAt = Math.max(arrivesAt, world.now + latency())
      world.after(arrivesAt - world.now, () => arrive(own, sent))
      if (silent) giveUpLater(own)
    })
  }

  /** Replies come unless it is silent, so only then does anyone's patience end. */
  function giveUpLater(own: Session): void {
    world.after(timeoutMs, () => own.open && pending.size > 0 && close(new Error('Socket timeout')))
  }

  function arrive(own: Session, commands: readonly Pending[]): void {
    if (!own.open || silent || !redis.up) return
    const replies: (() => void)[] = []
    let together = true
    for (const command of commands) {
      const reply = (act: () => void): void => {
        if (together) replies.push(() => settle(command, act))
        else deliver(own, [() => settle(command, act)])
      }
      try {
        command.run(own, (value) => reply(() => command.resolve(value)))
      } catch (error) {
        reply(() => command.reject(error as Error))
      }
    }
    together = false
    if (replies.length > 0) deliver(own, replies)
  }

  function deliver(own: Session, replies: readonly (() => void)[]): void {
    repliesAt = Math.max(repliesAt, world.now + latency())
    world.after(repliesAt - world.now, () => {
      if (own.open && !silent) for (const reply of replies) reply()
    })
  }

  const command =
    (name: string) =>
    (...args: (string | number | string[])[]): Promise<never> =>
      send((own, answer) => redis.execute(own, [name, ...args.flat()] as Command, answer)) as Promise<never>

  function multi(): RedisTransaction {
    const commands: Command[] = []
    const queue =
      (name: string) =>
      (...args: (string | number)[]): RedisTransaction => {
        commands.push([name, ...args])
        return transaction
      }
    const transaction: RedisTransaction = {
      get: queue('get'),
      set: queue('set'),
      del: queue('del'),
      hset: queue('hset'),
      hsetnx: queue('hsetnx'),
      sadd: queue('sadd'),
      srem: queue('srem'),
      xadd: queue('xadd'),
      exec: () => send((own, answer) => answer(redis.transact(own, commands))) as Promise<never>,
    }
    return transaction
  }

  const connection: SimulatedConnection = {
    get status() {
      return status
    },
    connect,
    disconnect: () => close(new Error('Connection is closed.')),
    once: (event, listener) => void listeners.push({ event, listener }),
    on: (_event, listener) => void closeListeners.push(listener),
    cut: () => {
      if (status === 'ready') close(new Error('read ECONNRESET'))
    },
    silence: () => {
      if (status !== 'ready') return
      silent = true
      if (pending.size > 0) giveUpLater(session)
    },
    get: command('get'),
    mget: command('mget'),
    set: command('set'),
    del: command('del'),
    smembers: command('smembers'),
    sadd: command('sadd'),
    srem: command('srem'),
    hget: command('hget'),
    hscan: command('hscan'),
    xrange: command('xrange'),
    xrevrange: command('xrevrange'),
    xread: command('xread'),
    watch: command('watch'),
    unwatch: command('unwatch'),
    eval: command('eval'),
    publish: command('publish'),
    multi,
  }
  if (reconnects) void connect().catch(() => {})
  return connection
}
