/** A simulated control: the real publisher and acknowledgements, on a simulated database and network. */
import { createPropagation, type Routing } from '../../control/ground/routing/routing.ts'
import { keys } from '../../shared/redis/keys.ts'
import { silentLog } from '../../shared/running/log.ts'
import { openConnection, type SimulatedConnection } from './connection.ts'
import type { Committed, SimulatedPostgres, Unrevised } from './postgres.ts'
import type { Change } from './scenario.ts'
import type { SimulatedRedis } from './redis.ts'
import type { Process, World } from './world.ts'

const COMMAND_TIMEOUT_MS = 1000

export class SimulatedControl {
  readonly name: string
  postgres: SimulatedPostgres
  #process: Process = { name: '', alive: false }
  #routing: Routing | undefined
  #connections: SimulatedConnection[] = []
  #tokens = 0
  readonly #world: World
  readonly #redis: SimulatedRedis

  constructor(world: World, redis: SimulatedRedis, postgres: SimulatedPostgres, name: string) {
    this.#world = world
    this.#redis = redis
    this.postgres = postgres
    this.name = name
  }

  get isRunning(): boolean {
    return this.#process.alive
  }

  start(): void {
    if (this.isRunning) return
    const process = (this.#process = { name: this.name, alive: true })
    const connect = (): SimulatedConnection =>
      openConnection({
        world: this.#world,
        redis: this.#redis,
        process,
        reconnects: true,
        timeoutMs: COMMAND_TIMEOUT_MS,
      })
    const [redis, publisherRedis] = (this.#connections = [connect(), connect()])
    const postgres = this.postgres
    this.#routing = createPropagation({
      store: postgres.storeOf(process),
      redis: redis!,
      publisherRedis: publisherRedis!,
      saysWhenLost: true,
      log: silentLog,
      timers: this.#world.timersOf(process),
      newToken: () => `${this.name}x${++this.#tokens}`,
      republishers: [
        async () => {
          const multi = publisherRedis!.multi()
          for (const [name, sealed] of postgres.state.certificates) multi.hsetnx(keys.certificates, name, sealed)
          const results = await multi.exec()
          if (!results || results.some(([error]) => error)) throw new Error('not all certificates are in Redis')
        },
      ],
    })
    this.#routing.start()
  }

  crash(): void {
    this.#process.alive = false
    for (const connection of this.#connections) connection.disconnect()
  }

  cut(): void {
    for (const connection of this.#connections) connection.cut()
  }

  silence(): void {
    for (const connection of this.#connections) connection.silence()
  }

  /** What an operator does where two databases could both be the right one. Returns whether it worked. */
  async beginHistory(): Promise<boolean> {
    return this.#routing!.republish({ newHistory: true }).then(
      () => true,
      () => false,
    )
  }

  /** A call that changes one route: commits, publishes, waits. Undefined: the caller got an error. */
  async change(
    operation: number,
    route: Unrevised,
    format: number,
    onCommit: (committed: Committed) => void,
    what?: Change,
  ): Promise<{ pending: boolean }> {
    const routing = this.#routing!
    const committed = await this.postgres.commit(this.#process, operation, route, format, what)
    onCommit(committed)
    return routing.propagate({ hosts: new Set([route.host]), histories: new Set([committed.history]) })
  }
}
