/**
 * What every plane says of the settings that all of them must share, so that a machine with another SECRET_KEY, BASE_URL,
 * SITES_DOMAIN or DNS01 is found before its mails, cookies and certificates fail. Secrets themselves are never said.
 *
 * A sorted set in Redis: what is said, by the time when it was last said. Planes that agree say the same.
 */
import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { SECOND_MS, type Clock } from '../running/clock.ts'
import { keys } from '../redis/keys.ts'
import type { Dns01Kind } from '../settings/settings.ts'

const SAY_EVERY_MS = 5 * SECOND_MS
/** A plane that has said nothing for so long has gone, or is another one now. */
const BELIEVED_MS = 30 * SECOND_MS

const schema = z.object({
  plane: z.enum(['control', 'edge']),
  baseUrl: z.string(),
  sitesDomain: z.string(),
  /** The same for the same SECRET_KEY. */
  keyMark: z.string(),
  /** How names are proven by DNS, or "off"; the release before does not say it. */
  dns01: z.string().optional(),
  /** The same for the same name server and account; those say it that use them. */
  dns01Mark: z.string().optional(),
})

export type PlaneSettings = z.infer<typeof schema>

export interface SharedByAll {
  readonly baseUrl: string
  readonly sitesDomain: string
  readonly secretKey: string
  readonly dns01Kind: Dns01Kind | undefined
  /** Where proofs are shown, by whom: undefined where no names are proven. */
  readonly dns01Account?: string | undefined
}

export function settingsOf(
  plane: PlaneSettings['plane'],
  { baseUrl, sitesDomain, secretKey, dns01Kind, dns01Account }: SharedByAll,
): PlaneSettings {
  const markOf = (text: string): string => createHmac('sha256', secretKey).update(text).digest('hex').slice(0, 16)
  return {
    plane,
    baseUrl,
    sitesDomain,
    keyMark: markOf('dropway plane settings'),
    dns01: dns01Kind ?? 'off',
    ...(dns01Account !== undefined && { dns01Mark: markOf(`dropway dns01 ${dns01Account}`) }),
  }
}

/** In what a plane differs, each as a sentence about it without the name of the plane; empty where it agrees. */
export function differencesOf(own: PlaneSettings, other: PlaneSettings): string[] {
  const has = (isOther: boolean, words: string): string[] => (isOther ? [`runs with ${words}`] : [])
  const isOtherKey = other.keyMark !== own.keyMark
  const isOtherKind = other.dns01 !== undefined && own.dns01 !== undefined && other.dns01 !== own.dns01
  const isOtherAccount =
    other.dns01Mark !== undefined && own.dns01Mark !== undefined && other.dns01Mark !== own.dns01Mark
  return [
    ...has(isOtherKey, 'another SECRET_KEY'),
    ...has(other.baseUrl !== own.baseUrl, `BASE_URL ${other.baseUrl}, not ${own.baseUrl}`),
    ...has(other.sitesDomain !== own.sitesDomain, `SITES_DOMAIN ${other.sitesDomain}, not ${own.sitesDomain}`),
    ...has(isOtherKind, `DNS01 ${other.dns01}, not ${own.dns01}`),
    // Another key makes other marks.
    ...has(isOtherAccount && !isOtherKey && !isOtherKind, 'other DNS01_… settings'),
  ]
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
