/** What happens in a run: changes that owners make, and what goes wrong, each with its moment. All of it from the seed. */
import { createRandom } from '../support/random.ts'

export type Action =
  | { readonly kind: 'change'; readonly what: Change; readonly host: number; readonly control: number }
  | { readonly kind: 'certificate'; readonly host: number }
  | { readonly kind: 'visit'; readonly host: number }
  | { readonly kind: 'cut one'; readonly which: number }
  | { readonly kind: 'cut' | 'silence'; readonly whom: 'edge' | 'control'; readonly which: number }
  | { readonly kind: 'redis down'; readonly ms: number }
  /** `ms`: for how long the new one refuses some commands, being short of memory. */
  | { readonly kind: 'redis failover'; readonly lost: number; readonly skewMs: number; readonly ms: number }
  | { readonly kind: 'redis flushed' }
  | { readonly kind: 'redis refuses'; readonly ms: number }
  | { readonly kind: 'backup' }
  | { readonly kind: 'restore'; readonly traceless: boolean }
  /** An operator asks for one, once, and does not look whether it worked. */
  | { readonly kind: 'new history' }
  | { readonly kind: 'postgres failover'; readonly lag: number; readonly leavesOld: boolean }
  /** A machine room is lost: Postgres fails over to one that lagged, and Redis comes back empty. */
  | { readonly kind: 'room lost'; readonly lag: number }
  | { readonly kind: 'postgres down'; readonly ms: number }
  | { readonly kind: 'edge dies'; readonly which: number; readonly machine: boolean; readonly ms: number }
  | { readonly kind: 'edge stops'; readonly which: number; readonly ms: number }
  /** `whenTold`: of what it hears next, before it has confirmed it. */
  | { readonly kind: 'worker dies'; readonly which: number; readonly whenTold: boolean }
  | { readonly kind: 'control dies'; readonly which: number; readonly ms: number }

/** `later format`: a record that no edge of this release can read. */
export type Change = 'publish' | 'purge' | 'password' | 'takedown' | 'delete' | 'domain' | 'later format'

export interface TimedAction {
  readonly at: number
  readonly action: Action
}

export interface Scenario {
  readonly seed: number
  readonly controls: number
  readonly edges: number
  readonly workers: number
  readonly logLength: number
  /** How long each edge takes to read a version while things happen; 0: no time. */
  readonly readingMs: readonly number[]
  /** How many refusals an edge keeps; undefined: as many as in production, which no run meets. */
  readonly maxRefusals: number | undefined
  readonly actions: readonly TimedAction[]
}

const FIRST_ACTION_MS = 250
/** Some runs are hasty, others leave time between what happens. */
const WINDOWS_MS = [400, 1000, 2500, 5000]
/** Misfortunes come together, and so do publishers. */
const CLUSTERED = 0.3
const MAX_CLUSTER_GAP_MS = 60
/**
 * Some runs have a publish that a failover of Redis takes back, with a certificate behind it in the log, a record that no
 * edge can read while Redis refuses commands, or an edge that comes back to one, having missed what was before it.
 */
const POINTED = 0.15
const MAX_POINTED_GAP_MS = 200
const MAX_FAILOVER_GAP_MS = 2500
/** Some runs have a new history that meets something while it is published, or while the edges read it. */
const PAIRED = 0.2
const COMPANION_GAPS_MS = [250, 1800]

/** Some publishes want everything older gone. */
const PURGED = 0.15

/** Some runs have edges on busy machines: longer than a look, longer than a publisher waits, or neither. */
const SLOW_READING = 0.2
const MAX_READING_MS = 7000

/** Some runs have edges that refuse more than they can tell. */
const FORGETFUL = 0.25

export function scenarioOf(seed: number): Scenario {
  const random = createRandom(seed ^ 0x5e_ed_5e_ed)
  const controls = random.between(1, 2)
  const edges = random.between(1, 3)
  const hosts = random.between(1, 3)
  /** Most runs suffer from few kinds of faults, so that each gets its turn alone. */
  const faults = Array.from({ length: random.between(0, 3) }, () => random.below(FAULTS.length))
  const count = random.between(3, 12)
  const window = random.pick(WINDOWS_MS)
  let before = FIRST_ACTION_MS
  const actions = Array.from({ length: count }, (): TimedAction => {
    const at = random.chance(CLUSTERED)
      ? before + random.below(MAX_CLUSTER_GAP_MS)
      : random.between(FIRST_ACTION_MS, FIRST_ACTION_MS + window)
    before = at
    const isFault = faults.length > 0 && random.chance(0.4)
    if (isFault) return { at, action: FAULTS[random.pick(faults)]!(random, edges, controls) }
    if (random.chance(0.2)) return { at, action: { kind: 'visit', host: random.below(hosts) } }
    if (random.chance(0.08)) return { at, action: { kind: 'certificate', host: random.below(hosts) } }
    const what = random.pick(CHANGES)
    return { at, action: { kind: 'change', what, host: random.below(hosts), control: random.below(controls) } }
  })
  if (random.chance(POINTED)) {
    const at = random.between(FIRST_ACTION_MS, FIRST_ACTION_MS + window)
    const host = random.below(hosts)
    const change = (what: Change): Action => ({ kind: 'change', what, host, control: random.below(controls) })
    const others = random.pick<readonly Action[]>([
      [
        change('publish'),
        { kind: 'redis failover', lost: random.between(1, 6), skewMs: 0, ms: 0 },
        { kind: 'certificate', host },
      ],
      [{ kind: 'redis refuses', ms: random.between(200, 1500) }, change('later format'), change('publish')],
      [
        change('publish'),
        { kind: 'edge stops', which: random.below(edges), ms: random.between(300, 1500) },
        change('publish'),
        change('password'),
        change('later format'),
      ],
    ])
    let then = at
    for (const action of others) actions.push({ at: (then += random.below(MAX_POINTED_GAP_MS)), action })
    const failover: Action = { kind: 'redis failover', lost: random.between(1, 30), skewMs: 0, ms: 0 }
    if (random.chance(0.5)) actions.push({ at: then + random.below(MAX_FAILOVER_GAP_MS), action: failover })
  }
  if (random.chance(PAIRED)) {
    const at = random.between(FIRST_ACTION_MS, FIRST_ACTION_MS + window)
    const after = random.pick(COMPANION_GAPS_MS)
    actions.push({ at, action: random.pick(SETBACKS)(random, edges, controls) })
    actions.push({ at: at + random.below(after), action: random.pick(COMPANIONS)(random, edges, controls) })
  }
  // Drawn from numbers of their own, so that the rest of a seed is what it was.
  const purging = createRandom(seed ^ 0x0d_1e_ed_0d)
  const reading = createRandom(seed ^ 0x0b_5e_55_ed)
  const isSlow = reading.chance(SLOW_READING)
  const refusing = createRandom(seed ^ 0x0f_04_9e_70)
  const readingMs = Array.from({ length: edges }, () => (isSlow ? reading.below(MAX_READING_MS) : 0))
  return {
    seed,
    controls,
    edges,
    readingMs,
    maxRefusals: refusing.chance(FORGETFUL) ? refusing.below(2) : undefined,
    workers: random.between(1, 2),
    logLength: random.pick([2, 3, 6, 100]),
    actions: actions.map((each) => (purging.chance(PURGED) ? purged(each) : each)).toSorted((a, b) => a.at - b.at),
  }
}

const CHANGES: readonly Change[] = [
  'publish',
  'publish',
  'publish',
  'publish',
  'password',
  'takedown',
  'delete',
  'domain',
  'later format',
]

function purged({ at, action }: TimedAction): TimedAction {
  const isPublish = action.kind === 'change' && action.what === 'publish'
  return { at, action: isPublish ? { ...action, what: 'purge' } : action }
}

/** When the last fault has ended. */
export function endOf({ actions }: Scenario): number {
  return Math.max(
    0,
    ...actions.map(
      ({ at, action }) => at + ('ms' in action ? action.ms : action.kind === 'postgres failover' ? LEFT_BEHIND_MS : 0),
    ),
  )
}

/** How long a primary that was left behind is still used by someone. */
export const LEFT_BEHIND_MS = 2000

type Draw = (random: ReturnType<typeof createRandom>, edges: number, controls: number) => Action

const FAULTS: readonly Draw[] = [
  (random, edges) => ({ kind: 'cut', whom: 'edge', which: random.below(edges) }),
  (random, edges) => ({ kind: 'cut one', which: random.below(edges) }),
  (random, _, controls) => ({ kind: 'cut', whom: 'control', which: random.below(controls) }),
  (random, edges) => ({ kind: 'silence', whom: 'edge', which: random.below(edges) }),
  (random, _, controls) => ({ kind: 'silence', whom: 'control', which: random.below(controls) }),
  (random) => ({ kind: 'redis down', ms: random.chance(0.2) ? 6500 : random.between(50, 1500) }),
  (random) => ({
    kind: 'redis failover',
    lost: random.below(10),
    skewMs: random.pick([0, 0, -5000, 3000]),
    ms: random.chance(0.3) ? random.between(300, 1500) : 0,
  }),
  () => ({ kind: 'redis flushed' }),
  (random) => ({ kind: 'redis refuses', ms: random.between(100, 1500) }),
  (random) => (random.chance(0.4) ? { kind: 'backup' } : { kind: 'restore', traceless: random.chance(0.5) }),
  (random) => ({ kind: 'postgres failover', lag: random.below(5), leavesOld: random.chance(0.4) }),
  (random) => ({ kind: 'room lost', lag: random.below(5) }),
  (random) => ({ kind: 'postgres down', ms: random.between(100, 2500) }),
  (random, edges) => ({
    kind: 'edge dies',
    which: random.below(edges),
    machine: random.chance(0.5),
    ms: random.between(20, 2500),
  }),
  (random, edges) => ({ kind: 'edge stops', which: random.below(edges), ms: random.between(20, 2500) }),
  (random, edges) => ({ kind: 'worker dies', which: random.below(edges), whenTold: random.chance(0.5) }),
  (random, _, controls) => ({ kind: 'control dies', which: random.below(controls), ms: random.between(50, 2500) }),
]

/** What a new history begins with. */
const SETBACKS: readonly Draw[] = [
  () => ({ kind: 'new history' }),
  (random) => ({ kind: 'restore', traceless: random.chance(0.3) }),
  (random) => ({ kind: 'postgres failover', lag: random.below(5), leavesOld: false }),
]

const COMPANIONS: readonly Draw[] = [
  (random, _, controls) => ({ kind: 'control dies', which: random.below(controls), ms: random.between(50, 1000) }),
  (random, _, controls) => ({ kind: 'cut', whom: 'control', which: random.below(controls) }),
  (random) => ({ kind: 'redis refuses', ms: random.between(100, 600) }),
  (random) => ({ kind: 'postgres down', ms: random.between(100, 600) }),
  (random) => ({ kind: 'room lost', lag: random.between(1, 3) }),
  (random) => ({ kind: 'room lost', lag: random.between(1, 3) }),
]
