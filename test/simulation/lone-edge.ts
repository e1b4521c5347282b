/** One edge at a simulated Redis, without a control: a test writes what control would. */
import { encodeEpoch, revisionFloor, type History } from '../../shared/contracts/history.ts'
import { keys } from '../../shared/redis/keys.ts'
import { encodeRouteRecord, type RouteRecord } from '../../shared/contracts/route-record.ts'
import { SimulatedEdge } from './edge.ts'
import { SimulatedRedis, type Command } from './redis.ts'
import { World } from './world.ts'

export const HOSTS = ['a', 'b', 'c', 'd']

export function loneEdge(seed = 7) {
  const world = new World(seed, false)
  const redis = new SimulatedRedis(world, 100)
  const edge = new SimulatedEdge(world, redis, 'edge', 1)
  const command = (...words: Command): void => redis.execute({ open: true, watched: new Map() }, words, () => {})
  return {
    world,
    redis,
    edge,
    command,
    publishAll(history: History) {
      for (const host of HOSTS) command('hset', keys.routes, host, recordOf(host, history))
      command('set', keys.epoch, encodeEpoch(history, 'snapshot'))
      command('set', keys.redisLife, `life${redis.life}`)
    },
  }
}

export function recordOf(host: string, history: History): string {
  const revision = revisionFloor(history.ordinal) + 1
  return encodeRouteRecord({ v: 1, kind: 'alias', host, to: 'elsewhere', revision } as RouteRecord)
}
