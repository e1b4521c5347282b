/** What owners read about clocks in places other than a mail: in `GET /me`, the command line and MCP answers. */
import { DAY_MS } from '../running/clock.ts'

/** A clock is shown when its end is nearer than this: two weekends to do something about it. */
const CLOCK_SHOWN_MS = 14 * DAY_MS

/** A drop as the API tells of it. */
export interface ClockedDrop {
  readonly slug: string
  readonly url: string
  readonly state: string
  /** ISO time; null without a clock. */
  readonly expires_at: string | null
}

/** Those whose clocks are worth a word: fewer than fourteen days left, or none any more. */
export function nearEnd<Drop extends ClockedDrop>(
  drops: readonly Drop[],
  now: number,
): (Drop & { readonly expires_at: string })[] {
  return drops.filter((drop): drop is Drop & { readonly expires_at: string } => {
    const { expires_at, state } = drop
    return (
      expires_at !== null && (state === 'live' || state === 'expired') && Date.parse(expires_at) - now < CLOCK_SHOWN_MS
    )
  })
}

/** One sentence per drop: what happens when, and what to do. */
export function clockNotices(drops: readonly ClockedDrop[], baseUrl: string, now: number): string[] {
  return nearEnd(drops, now).map(({ slug, state, expires_at }) => {
    const date = `${expires_at.slice(0, 10)} ${expires_at.slice(11, 16)} UTC`
    return state === 'expired' || Date.parse(expires_at) <= now
      ? `${slug} has expired. Sign in at ${baseUrl}/signin to bring it back.`
      : `${slug} expires on ${date}. Sign in at ${baseUrl}/signin, or publish to it, to keep it online.`
  })
}
