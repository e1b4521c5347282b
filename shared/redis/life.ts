/**
 * Which life of Redis this is: a promoted replica, or a server that was started again from its file, begins another one,
 * and may lack what the last one had confirmed. Positions in the log of two lives cannot be compared.
 */
import { keys } from './keys.ts'
import type { RedisCommands } from './commands.ts'

/** The question is a script with a key, so that a cluster asks the server that has our data. */
const READ_LIFE = `return redis.call('INFO', 'replication')`

/** A server that does not say (the stand-in without scripts) has no replicas that could be promoted. */
const ONLY_LIFE = 'only'

export async function lifeOf(redis: Pick<RedisCommands, 'eval'>): Promise<string> {
  const info = await redis.eval(READ_LIFE, 1, keys.redisLife).catch((error: unknown) => {
    if ((error as Error).name === 'ReplyError') return ''
    throw error
  })
  return /master_replid:(\w+)/.exec(String(info))?.[1] ?? ONLY_LIFE
}
