/** What the review page needs beside threads: the address of its frame, a pass for it, and who else is here. */
import type { Redis } from 'ioredis'
import { keys } from '../../../shared/redis/keys.ts'
import { previewHost, siteHost } from '../../../shared/http/hosts.ts'
import { MINUTE_MS, SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import { REVIEW_PARAMETER, REVIEW_VISIT_MS, sealReviewPass } from '../../../shared/secrets/review-pass.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import { addressOf } from '../../../shared/settings/settings.ts'
import type { ControlConfig } from '../../ground/config.ts'
import type { Sql } from '../../ground/database/sql.ts'
import type { SiteFacts } from '../sites/rules.ts'
import type { Reviewer } from '../threads/reviewer.ts'
import { memberSubject, noteAdmission } from '../viewers/lists.ts'
import { findHistory } from './queries.ts'

/** What the frame shows. */
export interface FramedPage {
  readonly page: string
  /** The name of a preview; undefined for what is live. */
  readonly preview?: string | undefined
}

export interface ReviewFrame {
  readonly src: string
  readonly origin: string
  /** For the stream of newer versions. */
  readonly pass: string
}

export interface ReviewFrames {
  of(site: SiteFacts, reviewer: Reviewer, framed: FramedPage): Promise<ReviewFrame>
  /** Notes that this person is here, and says who else is. */
  here(site: SiteFacts, reviewer: Reviewer): Promise<{ name: string; isYou: boolean }[]>
}

/** The address of the frame is used at once; afterwards its cookie counts. */
const ADDRESS_MS = 2 * MINUTE_MS
/** A tab says that it is here more often. */
const PRESENT_MS = 45 * SECOND_MS
/** More than anyone reads; a crowd must not make the answer large. */
const MAX_PRESENT = 30

interface ReviewFramesDependencies {
  readonly sql: Sql
  readonly redis: Pick<Redis, 'hset' | 'hgetall' | 'hdel' | 'pexpire'>
  readonly clock: Clock
  readonly secrets: Pick<Secrets, 'seal'>
  readonly config: Pick<ControlConfig, 'sitesDomain' | 'publicPort'>
}

export function createReviewFrames({ sql, redis, clock, secrets, config }: ReviewFramesDependencies): ReviewFrames {
  /** Noted, so that it can be taken back before its time. */
  async function passesOf(site: SiteFacts, reviewer: Reviewer): Promise<{ address: string; visit: string }> {
    const subject = await subjectOf(sql, site, reviewer)
    const now = clock.now()
    await noteAdmission(sql, site.id, subject, new Date(now + REVIEW_VISIT_MS + ADDRESS_MS))
    const pass = {
      siteId: site.id,
      subject,
      isMember: reviewer.kind === 'member',
      generation: site.password_generation,
      history: await findHistory(sql),
    }
    return {
      address: sealReviewPass(secrets, { ...pass, endsAt: now + ADDRESS_MS }),
      visit: sealReviewPass(secrets, { ...pass, endsAt: now + REVIEW_VISIT_MS }),
    }
  }

  return {
    async of(site, reviewer, { page, preview }) {
      const { address, visit } = await passesOf(site, reviewer)
      const { sitesDomain } = config
      const host = preview === undefined ? siteHost(site.slug, sitesDomain) : previewHost(preview, site, sitesDomain)
      const origin = addressOf(config, host)
      return { origin, src: `${origin}${encodeURI(page)}?${REVIEW_PARAMETER}=${address}`, pass: visit }
    },

    async here(site, { kind, id, key, name }) {
      const now = clock.now()
      const own = `${kind} ${id} ${key}`
      const all = keys.present(site.id)
      await redis.hset(all, own, JSON.stringify([now + PRESENT_MS, name]))
      await redis.pexpire(all, 2 * PRESENT_MS)
      const people: { name: string; isYou: boolean }[] = []
      for (const [person, text] of Object.entries(await redis.hgetall(all))) {
        const [until, shown] = JSON.parse(text) as [number, string]
        if (until <= now) await redis.hdel(all, person)
        else if (people.length < MAX_PRESENT) people.push({ name: shown, isYou: person === own })
      }
      return people.toSorted((a, b) => Number(b.isYou) - Number(a.isYou) || a.name.localeCompare(b.name))
    },
  }
}

/** Members by the moment in which they joined, so that what they opened ends when they leave. */
async function subjectOf(sql: Sql, site: SiteFacts, { kind, id, actor }: Reviewer): Promise<string> {
  return (kind === 'member' && actor ? await memberSubject(sql, site.id, actor.userId) : undefined) ?? id
}
