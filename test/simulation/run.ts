/** One run: a fleet, a scenario, a checker. */
import { encodeStreamMessage } from '../../shared/redis/stream.ts'
import { keys } from '../../shared/redis/keys.ts'
import { SEARCH_PAUSE_MS } from '../../edge/store/follow/search.ts'
import { VIEWERS_ONLY } from '../../shared/contracts/admission.ts'
import type { SiteRoute } from '../../shared/contracts/route-record.ts'
import { Checker, VIEWERS_GENERATION, type Violation } from './checker.ts'
import { openConnection } from './connection.ts'
import { hostNamed } from './content.ts'
import { SimulatedControl } from './control.ts'
import { SimulatedEdge } from './edge.ts'
import { SimulatedPostgres, type Committed, type State, type Unrevised } from './postgres.ts'
import { SimulatedRedis } from './redis.ts'
import { endOf, LEFT_BEHIND_MS, type Action, type Change, type Scenario } from './scenario.ts'
import { World } from './world.ts'

export interface Outcome {
  readonly violations: readonly Violation[]
  /** What happened, line by line; only where it is asked for. */
  readonly story: readonly string[]
}

/** Looked at so often whether everything has come right, once the last fault has ended. */
const LOOK_MS = 400
/** An edge whose connection went silent notices after four seconds, and a key that no one renews goes after five. */
const MAX_HEALING_MS = 14_000
const LAST_ATTEMPTS = 8
const CERTIFICATE_ATTEMPTS = 40
const LAST_CHANGE_MS = 12_000
const VISIT_AFTER_MS = 1

export async function runScenario(scenario: Scenario, tells = false): Promise<Outcome> {
  const world = new World(scenario.seed, tells)
  const redis = new SimulatedRedis(world, scenario.logLength)
  const checker = new Checker(world, redis)
  const postgres = new SimulatedPostgres(world)
  const edges = Array.from(
    { length: scenario.edges },
    (_, index) => new SimulatedEdge(world, redis, `edge${index}`, scenario.workers, postgres.contents),
  )
  if (scenario.readingMs.some((ms) => ms > 0))
    for (const [index, edge] of edges.entries()) edge.readingMs = scenario.readingMs[index]
  for (const edge of edges) edge.maxRefusals = scenario.maxRefusals
  const controls = Array.from(
    { length: scenario.controls },
    (_, index) => new SimulatedControl(world, redis, postgres, `control${index}`),
  )
  const issuer = openConnection({
    world,
    redis,
    process: { name: 'issuer', alive: true },
    reconnects: true,
    timeoutMs: 1000,
  })
  redis.onWrite = (key, value) => {
    if (key === keys.writer || key === keys.epoch) world.tell(() => `Redis: ${key} = ${value}`)
  }
  /** Without a newer one, a restore goes back to the beginning. */
  let backup: State = postgres.backUp()
  /**
   * Only an operator knows who is right: the database was set back without a trace, perhaps to before its last new
   * history, or one that was left behind has a history that is no older, and is the first to find Redis empty.
   */
  let needsOperator = false
  let operations = 0
  const versions = new Map<string, number>()

  function visit(edge: SimulatedEdge, worker: number, host: string, table?: number): void {
    const route = edge.visit(host, worker)
    world.tell(() => `visit ${edge.id}/${worker} ${host}: ${route ? `${route.kind} ${route.revision}` : 'unknown'}`)
    checker.visited(edge, worker, host, route, table)
    checker.looked(edge, worker, host, route)
  }

  function visitAll(host: string, table?: number): void {
    for (const edge of edges)
      if (edge.listening) for (let worker = 0; worker < edge.workers; worker++) visit(edge, worker, host, table)
  }

  // Someone always visits what has just changed.
  for (const edge of edges)
    edge.onServed = (worker, hosts = edge.hosts()) => {
      for (const host of hosts) visit(edge, worker, host)
    }

  async function change(what: Change, host: string, control: SimulatedControl): Promise<boolean> {
    if (!control.isRunning) return false
    const operation = ++operations
    const version = (versions.get(host) ?? 0) + 1
    versions.set(host, version)
    const format = what === 'later format' ? 2 : 1
    const route = routeOf(what, host, version)
    let committed: Committed | undefined
    let committedAt = 0
    world.tell(() => `${control.name}: ${what} ${route.host} (operation ${operation})`)
    if (format !== 1) checker.unreadable(route.host)
    try {
      const onCommit = (given: Committed): void => {
        committed = given
        if (isPublish(what)) checker.admitted(host, viewerOf(version), given.revision)
        committedAt = world.now
        world.tell(() => `operation ${operation} is committed at revision ${given.revision}`)
      }
      const { pending } = await control.change(operation, route, format, onCommit, what)
      world.tell(() => `operation ${operation} is answered${pending ? ', pending' : ''}`)
      if (!pending && committed) {
        const ended = route.kind === 'site' ? (route.viewers?.ended ?? []).map(([subject]) => subject) : []
        const { revision, ended: files } = committed
        checker.acknowledged({ operation, host: route.host, revision, ended, files }, edges, postgres)
        world.after(VISIT_AFTER_MS, () => {
          const isOurs = checker.isSince(committedAt) && postgres.state.operations.has(operation)
          visitAll(route.host, isOurs ? postgres.state.routes.get(route.host)?.revision : undefined)
        })
      }
      return !pending
    } catch (error) {
      world.tell(() => `operation ${operation} failed: ${(error as Error).message}`)
      return false
    }
  }

  /** A caller right after a history began hears `pending` for a moment. */
  async function changeUntilAcknowledged(host: string, control: SimulatedControl): Promise<boolean> {
    for (let attempt = 0; attempt < LAST_ATTEMPTS; attempt++) {
      if (await change('publish', host, control)) return true
      await new Promise<void>((resolve) => world.after(LOOK_MS, resolve))
    }
    return false
  }

  /** As an operator does: until it has worked. */
  async function beginHistory(control: SimulatedControl): Promise<void> {
    while (!(await control.beginHistory())) await new Promise<void>((resolve) => world.after(LOOK_MS, resolve))
  }

  /** As an issuer does: until it is saved. */
  async function saveCertificate(host: string): Promise<void> {
    const sealed = `sealed ${++operations}`
    const message = encodeStreamMessage({ kind: 'certificate', name: host, value: sealed })
    for (let attempt = 0; attempt < CERTIFICATE_ATTEMPTS; attempt++) {
      const saved = await issuer
        .multi()
        .hset(keys.certificates, host, sealed)
        .xadd(keys.log, 'MAXLEN', '~', scenario.logLength, '*', ...message)
        .exec()
        .catch(() => null)
      if (saved?.every(([error]) => error === null)) return postgres.saveCertificate(host, sealed)
      await new Promise<void>((resolve) => world.after(LOOK_MS, resolve))
    }
  }

  /** The database has become another; controls find it at the same address. */
  function attach(next: SimulatedPostgres): void {
    for (const control of controls) {
      if (control.postgres === next) continue
      control.crash()
      control.postgres = next
      control.start()
    }
  }

  function loseRedis(): void {
    checker.redisLost(Math.min(postgres.state.history.ordinal, Math.max(...edges.map((edge) => edge.historyOrdinal()))))
    needsOperator ||= controls.some(hasRival)
  }

  function hasRival({ postgres: { state } }: SimulatedControl): boolean {
    const { ordinal, id } = postgres.state.history
    return state.history.ordinal >= ordinal && state.history.id !== id
  }

  function refuseCommands(ms: number): void {
    if (ms === 0) return
    redis.refusals = 0.3
    world.after(ms, () => (redis.refusals = 0))
  }

  function act(action: Action): void {
    world.tell(() => JSON.stringify(action))
    switch (action.kind) {
      case 'change':
        return void change(action.what, hostNamed(`host${action.host}`), controls[action.control]!)
      case 'certificate':
        return void saveCertificate(hostNamed(`host${action.host}`))
      case 'visit':
        return visitAll(hostNamed(`host${action.host}`))
      case 'cut':
        return (action.whom === 'edge' ? edges : controls)[action.which]!.cut()
      case 'cut one':
        return edges[action.which]!.cutOne()
      case 'silence':
        return (action.whom === 'edge' ? edges : controls)[action.which]!.silence()
      case 'redis down':
        redis.up = false
        for (const each of [...edges, ...controls]) each.cut()
        issuer.cut()
        return world.after(action.ms, () => (redis.up = true))
      case 'redis failover':
        if (redis.failOver(action.lost, action.skewMs) > 0) loseRedis()
        for (const each of [...edges, ...controls]) each.cut()
        issuer.cut()
        return refuseCommands(action.ms)
      case 'redis flushed':
        redis.flush()
        return loseRedis()
      case 'redis refuses':
        return refuseCommands(action.ms)
      case 'backup':
        backup = postgres.backUp()
        return undefined
      case 'restore':
        checker.setBack(postgres.state.operations, backup.operations)
        needsOperator ||= action.traceless
        if (action.traceless) checker.setBackWithoutTrace(postgres.state.history.ordinal)
        return postgres.restore(backup, action.traceless)
      case 'new history':
        return void controls.find((each) => each.isRunning && each.postgres === postgres)?.beginHistory()
      case 'postgres failover': {
        // One that was promoted a moment ago and does not know it yet could be the right one as well.
        const knowsItself = postgres.state.history.life === postgres.life
        const old = action.leavesOld && controls.length > 1 && knowsItself ? postgres.leaveBehind() : undefined
        const before = postgres.state.operations
        postgres.failOver(action.lag)
        checker.setBack(before, postgres.state.operations)
        if (!old) return undefined
        const [left] = controls
        left!.crash()
        left!.postgres = old
        left!.start()
        // Redis may have been emptied a moment ago.
        needsOperator ||= redis.peek(keys.epoch) === null && hasRival(left!)
        return world.after(LEFT_BEHIND_MS, () => attach(postgres))
      }
      case 'room lost': {
        const before = postgres.state.operations
        postgres.failOver(action.lag)
        checker.setBack(before, postgres.state.operations)
        redis.flush()
        loseRedis()
        for (const each of [...edges, ...controls]) each.cut()
        return issuer.cut()
      }
      case 'postgres down':
        postgres.up = false
        return world.after(action.ms, () => (postgres.up = true))
      case 'edge dies': {
        const edge = edges[action.which]!
        edge.crash(action.machine)
        return world.after(action.ms, () => edge.start())
      }
      case 'edge stops': {
        const edge = edges[action.which]!
        void edge.stop().then(() => world.after(action.ms, () => edge.start()))
        return undefined
      }
      case 'worker dies': {
        const edge = edges[action.which]!
        if (action.whenTold) edge.loseToldWorker()
        else edge.loseWorker()
        return undefined
      }
      case 'control dies': {
        const control = controls[action.which]!
        control.crash()
        return world.after(action.ms, () => control.start())
      }
      default:
        return action satisfies never
    }
  }

  world.onEvent = () => checker.watch(edges, postgres)
  // Visitors come as soon as an edge is level.
  checker.onLevel = (edge) =>
    world.after(VISIT_AFTER_MS, () => {
      if (!edge.listening) return
      for (const host of versions.keys())
        for (let worker = 0; worker < edge.workers; worker++) visit(edge, worker, host)
    })
  for (const control of controls) control.start()
  for (const edge of edges) edge.start()
  for (const { at, action } of scenario.actions) world.after(at, () => act(action))
  await world.run(endOf(scenario) + LOOK_MS)
  for (const edge of edges) if (edge.readingMs !== undefined) edge.readingMs = 0
  for (const each of [...edges, ...controls]) each.start()
  if (needsOperator) void beginHistory(controls[0]!)
  // An edge that had too much to list rests for so long between two searches. What was still being read may be why.
  if (scenario.maxRefusals !== undefined) await world.run(world.now + MAX_HEALING_MS + SEARCH_PAUSE_MS)
  const deadline = world.now + MAX_HEALING_MS
  for (;;) {
    const wrong = checker.unlevel(edges, postgres, unreadableHosts(postgres))
    if (wrong.length === 0) break
    if (world.now >= deadline) {
      checker.notLevel(wrong)
      break
    }
    await world.run(world.now + LOOK_MS)
  }
  const answers = new Map<SimulatedControl, boolean>()
  for (const control of controls)
    void changeUntilAcknowledged(hostNamed('last'), control).then((done) => answers.set(control, done))
  for (let waited = 0; waited < LAST_CHANGE_MS && answers.size < controls.length; waited += LOOK_MS)
    await world.run(world.now + LOOK_MS)
  await world.run(world.now + 2 * VISIT_AFTER_MS)
  // An edge that refuses more than it can tell confirms nothing.
  const isTold = unreadableHosts(postgres).size <= (scenario.maxRefusals ?? Infinity)
  for (const control of controls)
    if (isTold && answers.get(control) !== true)
      checker.stuck(`a change at ${control.name} is not acknowledged when all is quiet`)
  return { violations: checker.violations, story: world.story }
}

function unreadableHosts({ state }: SimulatedPostgres): Set<string> {
  return new Set([...state.routes].filter(([, { record }]) => (record.v as number) !== 1).map(([host]) => host))
}

function routeOf(what: Change, host: string, version: number): Unrevised {
  if (what === 'domain') return { kind: 'alias', host: `www.${host}`, to: host }
  const hash = String(version).padStart(64, '0')
  const gone = what === 'delete' || what === 'takedown'
  return {
    kind: 'site',
    host,
    site_id: host,
    state: what === 'delete' ? 'gone' : what === 'takedown' ? 'removed' : 'live',
    manifest: gone ? null : hash,
    version_number: version,
    versions: gone ? [] : [[version, hash]],
    expires_at: null,
    ...sharingOf(what, version),
    spa_fallback: false,
    badge: false,
    analytics: null,
  }
}

const isPublish = (what: Change): boolean => what === 'publish' || what === 'purge'
const viewerOf = (version: number): string => `viewer${version}`
/** What a record names of those who were let in before. */
const MAX_NAMED = 50

/** Each publish lets one viewer in, and takes back what the publishes before it let in. */
function sharingOf(what: Change, version: number): Pick<SiteRoute, 'password' | 'viewers'> {
  const hash = String(version).padStart(64, '0')
  if (what === 'password') return { password: { hash, generation: version } }
  if (!isPublish(what)) return { password: null }
  const before = Array.from({ length: version - 1 }, (_, index): [string, number] => [viewerOf(index + 1), 0])
  return {
    password: { hash: VIEWERS_ONLY, generation: VIEWERS_GENERATION },
    viewers: { ended: before.slice(-MAX_NAMED), asks: true },
  }
}
