/**
 * What plans allow. The built-in table is plans.json; PLANS_FILE and PLANS put another one in its place, once, before
 * anything is served. Caps apply when something is added, never retroactively.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import {
  entryOf,
  parsePlanFile,
  PLAN_NAMES,
  UNLIMITED_BYTES,
  UNLIMITED_COUNT,
  type Plan,
  type PlanName,
  type PlanTableEntries,
} from './plan-file.ts'

export { PLAN_NAMES, type Plan, type PlanName }

type PlanTable = Record<PlanName, Plan>

/** `table`: as a file says. `single`: everyone has the caps of Business, and nothing is sold. `unlimited`: and no caps. */
export type PlanMode = 'table' | 'single' | 'unlimited'

export interface Terms {
  readonly plans: Readonly<PlanTable>
  /** What an organisation begins with. */
  readonly first: PlanName
  /** Is there anything to buy? Otherwise no page speaks of prices, and no hint of a better plan. */
  readonly sells: boolean
}

/** What new organisations have where there is one plan: no clock and no counting across organisations goes with it. */
const ONLY_PLAN: PlanName = 'business'
const ONLY_LABEL = 'Standard'

const BUILT_IN = readBuiltIn()

function readBuiltIn(): Readonly<PlanTable> {
  const { plans: read, invalid } = parsePlanFile(readFileSync(path.join(import.meta.dirname, 'plans.json'), 'utf8'))
  if (invalid.length > 0) throw new Error(invalid.join('\n'))
  return read as PlanTable
}

/** The terms of an instance: a table from a file, where there is one, or one plan for all. */
export function termsOf(mode: PlanMode, given?: PlanTableEntries): Terms {
  const table = { ...withoutPrices(BUILT_IN, given), ...given }
  if (mode === 'table') return { plans: table, first: 'free', sells: Object.values(table).some(isForSale) }
  const only = onlyPlan(table.business, mode)
  const plans = Object.fromEntries(
    PLAN_NAMES.map((name) => [name, name === 'anonymous' ? { ...table.anonymous, badge: false } : { ...only, name }]),
  ) as PlanTable
  return { plans, first: ONLY_PLAN, sells: false }
}

/** A plan that a file leaves out is sold no more; who has it keeps what it allowed. */
function withoutPrices(builtIn: Readonly<PlanTable>, given: PlanTableEntries | undefined): PlanTable {
  if (!given) return { ...builtIn }
  return Object.fromEntries(PLAN_NAMES.map((name) => [name, { ...builtIn[name], price: undefined }])) as PlanTable
}

function onlyPlan(business: Plan, mode: 'single' | 'unlimited'): Plan {
  const single: Plan = {
    ...business,
    label: ONLY_LABEL,
    price: undefined,
    bundles: true,
    password: true,
    analytics: true,
    badge: false,
    lifetime: 'permanent',
  }
  if (mode === 'single') return single
  return {
    ...single,
    activeDrops: UNLIMITED_COUNT,
    uploadBytes: UNLIMITED_BYTES,
    storageBytes: UNLIMITED_BYTES,
    versionsKept: UNLIMITED_COUNT,
    namedPreviews: UNLIMITED_COUNT,
    customDomains: UNLIMITED_COUNT,
    wildcardDomains: true,
    viewersPerDrop: UNLIMITED_COUNT,
  }
}

function isForSale({ price }: Plan): boolean {
  return price !== undefined && price.monthly + price.annual > 0
}

/** The plans in force. A table that everyone asks: it is filled before the first request and does not change after it. */
export const plans: PlanTable = { ...BUILT_IN }
let inForce: Terms = termsOf('table')

/** Puts the terms of this instance in force, for the whole process. */
export function installTerms(terms: Terms): void {
  inForce = terms
  Object.assign(plans, terms.plans)
}

export const firstPlan = (): PlanName => inForce.first
export const sellsPlans = (): boolean => inForce.sells

/** What people see side by side and may choose among. */
export function offeredPlans(): readonly Plan[] {
  return [plans.anonymous, plans.free, ...soldPlans()]
}

export type PricedPlan = Plan & {
  readonly name: 'plus' | 'business'
  readonly price: NonNullable<Plan['price']>
}

export function soldPlans(): readonly PricedPlan[] {
  return [plans.plus, plans.business].filter((plan): plan is PricedPlan => isForSale(plan))
}

/** Ends a sentence that says what makes room: `Delete one, or upgrade.` Without a better plan nothing is hinted at. */
export function orUpgrade(): string {
  return inForce.sells ? ', or upgrade' : ''
}

/** ` Upgrade to Plus or Business to use it.`: the plans that are sold and have it. */
export function upgradeFor(has: (plan: Plan) => boolean): string {
  const labels = soldPlans()
    .filter(has)
    .map(({ label }) => label)
  return labels.length === 0 ? '' : ` Upgrade to ${labels.join(' or ')} to use it.`
}

/** The plans in force, as a file that PLANS_FILE can name. */
export function plansAsFile(terms: Terms): { plans: Record<string, unknown> } {
  return { plans: Object.fromEntries(PLAN_NAMES.map((name) => [name, entryOf(terms.plans[name])])) }
}

/** What a person reads who wants one more drop than the plan has room for. */
export function dropCapInWords(plan: PlanName): string {
  const { activeDrops } = plans[plan]
  return isPaid(plan)
    ? `Your plan allows ${activeDrops} active drops.`
    : `The free plan allows ${activeDrops} active drops per person, in all their free organisations together.`
}

export function isPaid(plan: PlanName): boolean {
  return plan !== 'anonymous' && plan !== 'free'
}
