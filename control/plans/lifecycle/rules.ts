/** When owners hear of a clock, as a table. No I/O, no clock. */
import { leadOf, leadsOf } from '../../ground/terms/warnings.ts'
import type { ControlConfig } from '../../ground/config.ts'

export type NoticeSettings = Pick<
  ControlConfig,
  'freeIdleLifetimeMs' | 'recoveryWindowMs' | 'expiryWarningsMs' | 'removalWarningMs'
>

/** One mail about the clocks of an owner's drops. Times are relative to the moment at which a drop expires. */
export interface Notice {
  readonly kind: string
  readonly template: 'expiring' | 'expired' | 'removal'
  readonly dueMs: number
  /** From here on another notice says it better; Infinity: it is never too late. */
  readonly untilMs: number
  /** This is the date that it names, */
  readonly actsMs: number
  /** or one that is so far away from the mail, when the mail is late: its reader can still act. */
  readonly leadMs: number
  /** Other drops of the owner that are due so soon after are in the same mail. */
  readonly gatherMs: number
}

/** Mails are gathered over a seventh of their lead: a day where it is a week. */
const GATHER_SHARE = 1 / 7

/** Every mail about a clock, in the order in which it is due. */
export function noticesOf(settings: NoticeSettings): Notice[] {
  const { recoveryWindowMs } = settings
  const removalLeadMs = leadOf(settings.removalWarningMs, recoveryWindowMs)
  const leads = leadsOf(settings.expiryWarningsMs, settings.freeIdleLifetimeMs)
  return [
    ...leads.map((lead, index) => ({
      kind: `expiring_${index + 1}`,
      template: 'expiring' as const,
      dueMs: -lead,
      untilMs: -(leads[index + 1] ?? 0),
      actsMs: 0,
      leadMs: 0,
      gatherMs: lead * GATHER_SHARE,
    })),
    {
      kind: 'expired',
      template: 'expired',
      dueMs: 0,
      untilMs: Number.POSITIVE_INFINITY,
      actsMs: recoveryWindowMs,
      leadMs: removalLeadMs,
      gatherMs: 0,
    },
    {
      kind: 'removal',
      template: 'removal',
      dueMs: recoveryWindowMs - removalLeadMs,
      untilMs: Number.POSITIVE_INFINITY,
      actsMs: recoveryWindowMs,
      leadMs: removalLeadMs,
      gatherMs: removalLeadMs * GATHER_SHARE,
    },
  ]
}

/** Without each of these, sent and its date passed, nothing of an owner's is removed. */
export const NOTICES_BEFORE_REMOVAL = ['expired', 'removal'] as const

/** A drop with a clock, and what its owner was told of it. */
export interface ClockedDrop {
  readonly expires_at: Date
  readonly told: readonly string[]
}

/** The notices that are still to come for a drop, the next one first. */
function ahead(notices: readonly Notice[], { expires_at, told }: ClockedDrop, now: number): Notice[] {
  return notices.filter(({ kind, untilMs }) => !told.includes(kind) && now < expires_at.getTime() + untilMs)
}

/** When the next notice about a drop is due; null once all are sent. */
export function nextNoticeAt(notices: readonly Notice[], drop: ClockedDrop, now: number): Date | null {
  const [next] = ahead(notices, drop, now)
  return next ? new Date(drop.expires_at.getTime() + next.dueMs) : null
}

/** The mail that an owner gets now, about those of the drops that it concerns; undefined when nothing is due. */
export function dueNotice<Drop extends ClockedDrop>(
  notices: readonly Notice[],
  drops: readonly Drop[],
  now: number,
): { notice: Notice; drops: Drop[] } | undefined {
  const isDue = (drop: Drop, notice: Notice | undefined, gatherMs = 0): boolean =>
    notice !== undefined && now + gatherMs >= drop.expires_at.getTime() + notice.dueMs
  const first = drops.find((drop) => isDue(drop, ahead(notices, drop, now)[0]))
  const notice = first && ahead(notices, first, now)[0]
  if (!notice) return undefined
  const gathered = drops.filter(
    (drop) => ahead(notices, drop, now)[0]?.kind === notice.kind && isDue(drop, notice, notice.gatherMs),
  )
  return { notice, drops: gathered }
}

/** The date that a notice names for a drop. */
export function actsAt({ actsMs, leadMs }: Notice, { expires_at }: ClockedDrop, now: number): Date {
  return new Date(Math.max(expires_at.getTime() + actsMs, now + leadMs))
}
