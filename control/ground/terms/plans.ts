/** The plan table of the specification, as data. Caps apply when something is added, never retroactively. */
const MB = 1_000_000
const GB = 1000 * MB

export const PLAN_NAMES = ['anonymous', 'free', 'plus', 'business', 'starter', 'pro'] as const
export type PlanName = (typeof PLAN_NAMES)[number]

export interface Plan {
  readonly name: PlanName
  readonly label: string
  /** Whole currency units; undefined when the plan is not sold. */
  readonly price: { readonly monthly: number; readonly annual: number } | undefined
  readonly activeDrops: number
  readonly uploadBytes: number
  readonly storageBytes: number
  readonly versionsKept: number
  /** Named previews of one drop. */
  readonly namedPreviews: number
  readonly customDomains: number
  /** Viewers of one drop, and as many guest links. */
  readonly viewersPerDrop: number
  readonly bundles: boolean
  readonly password: boolean
  readonly analytics: boolean
  readonly badge: boolean
  /** `fixed`: from the upload on; `idle`: since the owner's last sign-in; `permanent`: no clock. */
  readonly lifetime: 'fixed' | 'idle' | 'permanent'
}

type SoldPlan = Plan & { readonly price: NonNullable<Plan['price']> }

const plus: SoldPlan = {
  name: 'plus',
  label: 'Plus',
  price: { monthly: 12, annual: 99 },
  activeDrops: 25,
  uploadBytes: 100 * MB,
  storageBytes: 2 * GB,
  versionsKept: 10,
  namedPreviews: 10,
  customDomains: 1,
  viewersPerDrop: 50,
  bundles: true,
  password: true,
  analytics: true,
  badge: false,
  lifetime: 'permanent',
}

export const plans: Readonly<Record<PlanName, Plan> & Record<'plus' | 'business', SoldPlan>> = {
  anonymous: {
    name: 'anonymous',
    label: 'Anonymous',
    price: undefined,
    activeDrops: Number.POSITIVE_INFINITY,
    uploadBytes: 2 * MB,
    storageBytes: Number.POSITIVE_INFINITY,
    versionsKept: 1,
    namedPreviews: 0,
    customDomains: 0,
    viewersPerDrop: 0,
    bundles: false,
    password: false,
    analytics: false,
    badge: true,
    lifetime: 'fixed',
  },
  free: {
    name: 'free',
    label: 'Free',
    price: { monthly: 0, annual: 0 },
    activeDrops: 3,
    uploadBytes: 10 * MB,
    storageBytes: 50 * MB,
    versionsKept: 3,
    namedPreviews: 1,
    customDomains: 0,
    viewersPerDrop: 5,
    bundles: true,
    password: false,
    analytics: false,
    badge: true,
    lifetime: 'idle',
  },
  plus,
  business: {
    ...plus,
    name: 'business',
    label: 'Business',
    price: { monthly: 49, annual: 490 },
    activeDrops: 100,
    uploadBytes: 500 * MB,
    storageBytes: 20 * GB,
    versionsKept: 30,
    namedPreviews: 50,
    customDomains: 10,
    viewersPerDrop: 500,
  },
  // Grandfathered: no longer sold, limits unchanged while the subscription lasts.
  starter: { ...plus, name: 'starter', label: 'Starter', price: undefined },
  pro: { ...plus, name: 'pro', label: 'Pro', price: undefined },
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
