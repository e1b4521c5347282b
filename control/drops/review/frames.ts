/** What the review page needs beside threads: the address of its frame, a pass for it, and who else is here. */
import type { Redis } from 'ioredis'
import { keys } from '../../../shared/redis/keys.ts'
import { previewHost, siteHost } from '../../../shared/http/hosts.ts'
import { MINUTE_MS, SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { REVIEW_PARAMETER, sealAddressPass, sealReviewPass } from '../../../shared/secrets/review-pass.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import { addressOf } from '../../../shared/settings/settings.ts'
import type { ControlConfig } from '../../ground/config.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import type { SiteFacts } from '../sites/rules.ts'
import type { Reviewer } from '../threads/reviewer.ts'
import { memberSubject, noteAdmission, REVIEW_VISIT_MS } from '../viewers/lists.ts'
import { admissionEnd } from '../visiting/rules.ts'
import { lockPassedDrop } from './queries.ts'

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
  /** Throws 401 for who was let in until a moment ago. */
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
  readonly sql: Pool
  readonly redis: Pick<Redis, 'hset' | 'hgetall' | 'hdel' | 'pexpire'>
  readonly clock: Clock
  readonly secrets: Pick<Secrets, 'seal'>
  readonly config: Pick<ControlConfig, 'sitesDomain' | 'publicPort'>
}

export function createReviewFrames({ sql, redis, clock, secrets, config }: ReviewFramesDependencies): ReviewFrames {
  /** The end of the visit is fixed here, once, and noted, so that it can be taken back before its time. */
  function passesOf(site: SiteFacts, reviewer: Reviewer): Promise<{ address: string; visit: string }> {
    return transaction(sql, async (tx) => {
      const drop = await lockPassedDrop(tx, site.id)
      const subject = await subjectOf(tx, site, reviewer)
      const now = clock.now()
      const own = reviewer.endsAt === undefined ? null : new Date(reviewer.endsAt)
      const end = admissionEnd(now, { serviceMs: REVIEW_VISIT_MS, dropMs: drop?.admission_ms ?? null, linkEnd: own })
      if (!drop || subject === undefined || !(await noteAdmission(tx, site.id, subject, end)))
        throw errors.unauthorized('Open the link that you were sent, or sign in.')
      const visitEndsAt = end.getTime()
      const visit = {
        siteId: site.id,
        subject,
        isMember: reviewer.kind === 'member',
        generation: drop.password_generation,
        history: drop.history,
        endsAt: visitEndsAt,
      }
      const endsAt = Math.min(now + ADDRESS_MS, visitEndsAt)
      return {
        address: sealAddressPass(secrets, { ...visit, endsAt, visitEndsAt }),
        visit: sealReviewPass(secrets, visit),
      }
    })
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
async function subjectOf(sql: Sql, site: SiteFacts, { kind, id, actor }: Reviewer): Promise<string | undefined> {
  return kind === 'member' && actor ? memberSubject(sql, site.id, actor.userId) : id
}
