/** A simulated edge: the real follower, replica, parsed copies and confirmations, on a simulated disk and network. */
import { startFollower, type Follower } from '../../edge/store/follow/follower.ts'
import { forgetChanges } from '../../edge/store/forget.ts'
import { createQuestions, type Questions } from '../../edge/store/questions.ts'
import { createReplica, type Change, type Entry, type Replica } from '../../edge/store/replica/replica.ts'
import { createRoutes, type Routes } from '../../edge/store/routes.ts'
import type { ServedRoute } from '../../edge/context.ts'
import { edgeIdOf } from '../../shared/contracts/live-edges.ts'
import { silentLog } from '../../shared/running/log.ts'
import { openConnection, type SimulatedConnection } from './connection.ts'
import { Contents, Reader } from './content.ts'
import { createDisk } from './disk.ts'
import type { SimulatedRedis } from './redis.ts'
import type { Process, World } from './world.ts'

interface Worker {
  readonly process: Process
  readonly replica: Replica
  readonly routes: Routes
  readonly reader: Reader
  readonly questions: Questions<true>
}

const COMMAND_TIMEOUT_MS = 2000
const MAX_MESSAGE_MS = 8
const SLOW_FACTOR = 60
const MAX_PARSED = 16
const MAX_BATCH = 3

export class SimulatedEdge {
  readonly name: string
  /** Changes with every start, as in production. */
  id = ''
  /** Of this start: a visitor can reach it. */
  listening = false
  followingSince: number | undefined
  /** A worker has just learned what it serves from now on; undefined: perhaps everything is new. */
  onServed: (worker: number, hosts: readonly string[] | undefined) => void = () => {}
  /** How long it takes to read what a record names; undefined: it does not look. */
  readingMs: number | undefined
  /** Why what a record names cannot be used. */
  problemOf: (name: string) => string | undefined = () => undefined
  /** How many refusals it keeps; undefined: as many as in production. */
  maxRefusals: number | undefined
  #nextToldDies = false
  #process: Process = { name: '', alive: false }
  #follower: Follower | undefined
  #replica: Replica | undefined
  #workers: Worker[] = []
  #connections = new Set<SimulatedConnection>()
  #starts = 0
  #stopping = false
  readonly #disk
  readonly #world: World
  readonly #redis: SimulatedRedis
  readonly #workerCount: number
  readonly #contents: Contents

  constructor(world: World, redis: SimulatedRedis, name: string, workerCount: number, contents = new Contents()) {
    this.#world = world
    this.#contents = contents
    this.#redis = redis
    this.name = name
    this.#workerCount = workerCount
    this.#disk = createDisk(world)
  }

  get isRunning(): boolean {
    return this.#process.alive
  }

  get workers(): number {
    return this.#workers.length
  }

  start(): void {
    if (this.isRunning) return
    const process = (this.#process = { name: this.name, alive: true })
    this.id = edgeIdOf(`${this.name}-${++this.#starts}`)
    this.#stopping = false
    const replica = (this.#replica = createReplica(this.#disk.open(), {
      readOnly: false,
      maxRefusals: this.maxRefusals,
    }))
    this.#workers = Array.from({ length: this.#workerCount }, () => this.#startWorker())
    const follower = (this.#follower = startFollower({
      edgeId: this.id,
      replica,
      connect: (use) => this.#connect(process, use === 'blocking' ? 2 * COMMAND_TIMEOUT_MS : COMMAND_TIMEOUT_MS),
      announce: (changes) => this.#announce(changes),
      ...(this.readingMs === undefined ? {} : { problemOf: (entry) => this.#read(process, entry) }),
      log: silentLog,
      timers: this.#world.timersOf(process),
      logBatch: Math.min(MAX_BATCH, this.#redis.logLength),
    }))
    void follower.firstSync.then(() => {
      if (process.alive && !this.#stopping) this.listening = true
    })
  }

  /** kill -9, or the machine's end, which takes what is not on disk with it. */
  crash(machine: boolean): void {
    this.#end()
    if (machine) this.#disk.crash()
  }

  async stop(): Promise<void> {
    if (!this.isRunning) return
    this.#stopping = true
    this.listening = false
    await this.#follower!.stop()
    this.#end()
  }

  #end(): void {
    this.listening = false
    this.#process.alive = false
    this.followingSince = undefined
    for (const connection of this.#connections) connection.disconnect()
    this.#connections.clear()
    this.#workers = []
  }

  /** A worker dies and is replaced by one that remembers nothing. */
  loseWorker(): void {
    if (this.isRunning) this.#replace(this.#world.random.pick(this.#workers))
  }

  /** The next worker to be told of a change does not live to confirm it. */
  loseToldWorker(): void {
    this.#nextToldDies = true
  }

  #replace(lost: Worker): void {
    this.#workers[this.#workers.indexOf(lost)] = this.#startWorker()
    lost.process.alive = false
    lost.questions.end()
  }

  cut(): void {
    for (const connection of this.#connections) connection.cut()
  }

  /** One of its connections breaks, and no one tells the other. */
  cutOne(): void {
    const ready = [...this.#connections].filter(({ status }) => status === 'ready')
    if (ready.length > 0) this.#world.random.pick(ready).cut()
  }

  silence(): void {
    for (const connection of this.#connections) connection.silence()
  }

  /** What a visitor meets at one of its workers. */
  visit(host: string, worker: number): ServedRoute | undefined {
    return this.#workers[worker]!.routes.get(host)
  }

  /** Whether a visitor of a worker who was let in gets the chunk of this version. */
  finds(worker: number, host: string, version: number, preview: boolean): boolean {
    return this.#workers[worker]!.reader.finds(host, version, preview)
  }

  replicaRoute(host: string): ServedRoute | undefined {
    return this.#replica!.route(host)
  }

  hosts(): string[] {
    return [...this.#replica!.hosts()]
  }

  /** The ordinal of the newest history that it has heard of. */
  historyOrdinal(): number {
    return (this.isRunning && this.#replica!.history()?.ordinal) || 0
  }

  certificate(name: string): string | undefined {
    return this.#replica!.value('certificate', name)
  }

  isFollowing(): boolean {
    return this.isRunning && this.#follower!.isFollowing()
  }

  /** A version takes time to be read; a certificate is all in what tells of it. */
  async #read(process: Process, { kind, name }: Entry): Promise<string | undefined> {
    const ms = kind === 'certificate' ? 0 : (this.readingMs ?? 0)
    if (ms > 0) await this.#world.timersOf(process).sleep(ms)
    return this.problemOf(name)
  }

  #connect(process: Process, timeoutMs: number): SimulatedConnection {
    const connection = openConnection({
      world: this.#world,
      redis: this.#redis,
      process,
      reconnects: false,
      timeoutMs,
    })
    this.#connections.add(connection)
    return connection
  }

  #startWorker(): Worker {
    const replica = createReplica(this.#disk.open(), { readOnly: true })
    const routes = createRoutes(replica, MAX_PARSED)
    return {
      process: { name: `${this.name} worker`, alive: true },
      replica,
      routes,
      reader: new Reader(routes, this.#contents),
      questions: createQuestions(),
    }
  }

  async #announce(changes: readonly Change[] | undefined): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.questions.ask((id) => this.#tell(worker, id, changes))))
  }

  #tell(worker: Worker, id: number, changes: readonly Change[] | undefined): void {
    const world = this.#world
    const primary = this.#process
    // Some worker is busy with something else.
    const patience = world.random.chance(0.05) ? SLOW_FACTOR : 1
    world.after(world.random.next() * MAX_MESSAGE_MS * patience, () => {
      if (!worker.process.alive || !primary.alive) return
      if (this.#nextToldDies) {
        this.#nextToldDies = false
        return this.#replace(worker)
      }
      forgetChanges({ ...worker, certificates: { forget: () => {} } }, changes)
      const routes = changes?.flatMap(({ kind, name }) => (kind === 'route' ? [name] : []))
      if (this.listening) this.onServed(this.#workers.indexOf(worker), routes)
      world.after(world.random.next() * MAX_MESSAGE_MS, () => primary.alive && worker.questions.answered(id, true))
    })
  }
}
