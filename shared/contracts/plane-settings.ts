/**
 * What every plane says of the settings that all of them must share, so that a machine with another SECRET_KEY, BASE_URL
 * or SITES_DOMAIN is found before its mails, cookies and certificates fail. The key itself is never said.
 *
 * A sorted set in Redis: what is said, by the time when it was last said. Planes that agree say the same.
 */
import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { SECOND_MS, type Clock } from '../running/clock.ts'
import { keys } from '../redis/keys.ts'

const SAY_EVERY_MS = 5 * SECOND_MS
/** A plane that has said nothing for so long has gone, or is another one now. */
const BELIEVED_MS = 30 * SECOND_MS

const schema = z.object({
  plane: z.enum(['control', 'edge']),
  baseUrl: z.string(),
  sitesDomain: z.string(),
  /** The same for the same SECRET_KEY. */
  keyMark: z.string(),
})

export type PlaneSettings = z.infer<typeof schema>

export interface SharedByAll {
  readonly baseUrl: string
  readonly sitesDomain: string
  readonly secretKey: string
}

export function settingsOf(
  plane: PlaneSettings['plane'],
  { baseUrl, sitesDomain, secretKey }: SharedByAll,
): PlaneSettings {
  const keyMark = createHmac('sha256', secretKey).update('dropway plane settings').digest('hex').slice(0, 16)
  return { plane, baseUrl, sitesDomain, keyMark }
}

/** The commands it takes of a Redis client. */
export interface SettingsRegistry {
  zadd(key: string, score: number, member: string): Promise<unknown>
  zremrangebyscore(key: string, min: number | string, max: number | string): Promise<unknown>
  zrangebyscore(key: string, min: number | string, max: number | string): Promise<string[]>
}

/** Says them now and every few seconds, where Redis is there. Returns how to stop. */
export function saySettings(
  redis: Pick<SettingsRegistry, 'zadd' | 'zremrangebyscore'>,
  clock: Clock,
  settings: PlaneSettings,
): () => void {
  const said = JSON.stringify(settings)
  const say = (): void => {
    const now = clock.now()
    // Without Redis no one could read it either.
    redis.zadd(keys.settings, now, said).catch(() => {})
    redis.zremrangebyscore(keys.settings, '-inf', now - BELIEVED_MS).catch(() => {})
  }
  say()
  const timer = setInterval(say, SAY_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/** What the planes that run now say, each once. */
export async function settingsSaid(
  redis: Pick<SettingsRegistry, 'zrangebyscore'>,
  now: number,
): Promise<PlaneSettings[]> {
  const said = await redis.zrangebyscore(keys.settings, now - BELIEVED_MS, '+inf')
  return said.flatMap((text) => schema.safeParse(JSON.parse(text)).data ?? [])
}
