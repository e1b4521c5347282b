/**
 * A file of plans, YAML or JSON: what PLANS_FILE names, and what plans.json beside this file is. Reading one never throws:
 * it says what is wrong, by plan and entry.
 */
import { createRequire } from 'node:module'
import { z } from 'zod'
import { MAX_BUNDLE_FILES } from '../../../shared/contracts/limits.ts'
import { nearestName } from '../../../shared/values/nearest-name.ts'

export const PLAN_NAMES = ['anonymous', 'free', 'plus', 'business', 'starter', 'pro'] as const
export type PlanName = (typeof PLAN_NAMES)[number]

/** Those that may be for sale: Stripe knows their products by these names. */
const SELLABLE: ReadonlySet<PlanName> = new Set(['free', 'plus', 'business'])

export interface Plan {
  readonly name: PlanName
  readonly label: string
  /** Whole currency units; undefined when the plan is not sold. */
  readonly price: { readonly monthly: number; readonly annual: number } | undefined
  readonly activeDrops: number
  readonly uploadBytes: number
  readonly storageBytes: number
  readonly versionsKept: number
  readonly filesPerVersion: number
  /** Named previews of one drop. */
  readonly namedPreviews: number
  readonly customDomains: number
  /** Whether one of them may stand for every name below another. */
  readonly wildcardDomains: boolean
  /** Viewers of one drop, and as many guest links. */
  readonly viewersPerDrop: number
  readonly bundles: boolean
  readonly password: boolean
  readonly analytics: boolean
  readonly badge: boolean
  /** `fixed`: from the upload on; `idle`: since the owner's last sign-in; `permanent`: no clock. */
  readonly lifetime: 'fixed' | 'idle' | 'permanent'
}

export type PlanTableEntries = Readonly<Partial<Record<PlanName, Plan>>>

/** No cap, as numbers that Postgres, JSON and a person's patience still take. */
export const UNLIMITED_COUNT = 1_000_000_000
export const UNLIMITED_BYTES = 1e15

export function isUnlimited(value: number): boolean {
  return value >= UNLIMITED_COUNT && (value === UNLIMITED_COUNT || value >= UNLIMITED_BYTES)
}

const MB = 1_000_000
const MAX_MB = 100_000_000
const MAX_COUNT = UNLIMITED_COUNT - 1

const whole = (min: number, max: number) =>
  z.custom<number>((value) => Number.isInteger(value) && Number(value) >= min && Number(value) <= max, {
    error: `must be a whole number from ${min} to ${max}`,
  })
const count = (min: number) =>
  z.custom<number | 'unlimited'>((value) => value === 'unlimited' || whole(min, MAX_COUNT).safeParse(value).success, {
    error: `must be a whole number from ${min} to ${MAX_COUNT}, or "unlimited"`,
  })
const megabytes = z.custom<number | 'unlimited'>(
  (value) => value === 'unlimited' || (typeof value === 'number' && value > 0 && value <= MAX_MB),
  { error: `must be a number of megabytes up to ${MAX_MB}, or "unlimited"` },
)
const flag = z.boolean({ error: 'must be true or false' })
const MAX_LABEL_CHARS = 40

const entrySchema = z.strictObject({
  label: z.custom<string>(
    (value) => typeof value === 'string' && value.trim() === value && value !== '' && value.length <= MAX_LABEL_CHARS,
    { error: `must be a name of 1 to ${MAX_LABEL_CHARS} characters` },
  ),
  price: z
    .strictObject(
      { monthly: whole(0, MAX_COUNT), annual: whole(0, MAX_COUNT) },
      { error: 'must have "monthly" and "annual"' },
    )
    .nullish(),
  active_drops: count(1),
  upload_mb: megabytes,
  storage_mb: megabytes,
  versions_kept: count(1),
  files_per_version: whole(1, MAX_BUNDLE_FILES),
  named_previews: count(0),
  custom_domains: count(0),
  // Later than the first files of operators.
  wildcard_domains: flag.default(false),
  viewers_per_drop: count(0),
  bundles: flag,
  password: flag,
  analytics: flag,
  badge: flag,
  lifetime: z.enum(['fixed', 'idle', 'permanent'], { error: 'must be fixed, idle or permanent' }),
})

type Entry = z.infer<typeof entrySchema>
const ENTRY_NAMES = Object.keys(entrySchema.shape)

export interface ReadPlans {
  readonly plans: PlanTableEntries
  /** What is wrong, by plan and entry; nothing of the file counts then. */
  readonly invalid: readonly string[]
}

/** The library is loaded where a file is YAML: most instances never need it. */
const yamlLibrary = (): typeof import('yaml') => createRequire(import.meta.url)('yaml') as typeof import('yaml')

export function parsePlanFile(text: string): ReadPlans {
  const refused = (...invalid: string[]): ReadPlans => ({ plans: {}, invalid })
  let value: unknown
  try {
    value = text.trimStart().startsWith('{') ? JSON.parse(text) : yamlLibrary().parse(text, { maxAliasCount: 100 })
  } catch (error) {
    return refused(`it is neither YAML nor JSON: ${(error as Error).message.split('\n')[0]}`)
  }
  const plans = z.looseObject({ plans: z.record(z.string(), z.unknown()) }).safeParse(value).data?.plans
  if (!plans) return refused('it must have an entry "plans" that holds the plans by their names')
  const read = Object.entries(plans).map(([name, entries]) => readPlan(name, entries))
  const missing = (['anonymous', 'free'] as const).filter((name) => !Object.hasOwn(plans, name))
  const invalid = [
    ...read.flatMap((one) => (Array.isArray(one) ? one : [])),
    ...missing.map((name) => `plan "${name}" is missing: it is what people have before anything else`),
  ]
  if (invalid.length > 0) return refused(...invalid)
  return {
    plans: Object.fromEntries(read.flatMap((one) => (Array.isArray(one) ? [] : [[one.name, one]]))),
    invalid: [],
  }
}

/** The plan, or what is wrong with it. */
function readPlan(given: string, entries: unknown): Plan | string[] {
  const name = PLAN_NAMES.find((candidate) => candidate === given)
  if (!name) return [`plan "${given}" is not known${meant(given, PLAN_NAMES)}. Plans are ${PLAN_NAMES.join(', ')}`]
  const { data, error } = entrySchema.safeParse(entries)
  if (!data) return (error?.issues ?? []).flatMap((issue) => inWords(name, issue, entries))
  if (data.price && !SELLABLE.has(name)) return [`plan "${name}", entry "price": this plan is not sold. Leave it out`]
  return planOf(name, data)
}

function inWords(plan: string, issue: z.core.$ZodIssue, entries: unknown): string[] {
  if (issue.code === 'unrecognized_keys' && issue.path.length === 0)
    return issue.keys.map((key) => `plan "${plan}", entry "${key}" is not known${meant(key, ENTRY_NAMES)}`)
  if (issue.path.length === 0) return [`plan "${plan}" must hold entries such as label and active_drops`]
  const isMissing =
    issue.path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown>)[key], entries) === undefined
  return [`plan "${plan}", entry "${issue.path.join('.')}": ${isMissing ? 'is missing; it ' : ''}${issue.message}`]
}

function meant(given: string, known: readonly string[]): string {
  const nearest = nearestName(given, known)
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`
}

function planOf(name: PlanName, entry: Entry): Plan {
  const number = (value: number | 'unlimited'): number => (value === 'unlimited' ? UNLIMITED_COUNT : value)
  const bytes = (value: number | 'unlimited'): number =>
    value === 'unlimited' ? UNLIMITED_BYTES : Math.round(value * MB)
  return {
    name,
    label: entry.label,
    price: entry.price ?? undefined,
    activeDrops: number(entry.active_drops),
    uploadBytes: bytes(entry.upload_mb),
    storageBytes: bytes(entry.storage_mb),
    versionsKept: number(entry.versions_kept),
    filesPerVersion: entry.files_per_version,
    namedPreviews: number(entry.named_previews),
    customDomains: number(entry.custom_domains),
    wildcardDomains: entry.wildcard_domains,
    viewersPerDrop: number(entry.viewers_per_drop),
    bundles: entry.bundles,
    password: entry.password,
    analytics: entry.analytics,
    badge: entry.badge,
    lifetime: entry.lifetime,
  }
}

/** A plan as a file has it: what `admin plans show` prints can be read back. */
export function entryOf(plan: Plan): Record<string, unknown> {
  const number = (value: number): number | 'unlimited' => (isUnlimited(value) ? 'unlimited' : value)
  const size = (value: number): number | 'unlimited' => (isUnlimited(value) ? 'unlimited' : value / MB)
  return {
    label: plan.label,
    ...(plan.price ? { price: plan.price } : {}),
    active_drops: number(plan.activeDrops),
    upload_mb: size(plan.uploadBytes),
    storage_mb: size(plan.storageBytes),
    versions_kept: number(plan.versionsKept),
    files_per_version: plan.filesPerVersion,
    named_previews: number(plan.namedPreviews),
    custom_domains: number(plan.customDomains),
    wildcard_domains: plan.wildcardDomains,
    viewers_per_drop: number(plan.viewersPerDrop),
    bundles: plan.bundles,
    password: plan.password,
    analytics: plan.analytics,
    badge: plan.badge,
    lifetime: plan.lifetime,
  }
}
