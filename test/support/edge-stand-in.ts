/**
 * The part of an edge that certificates need: it follows the change log, acknowledges, answers challenges from
 * memory, and hands news to an issuer.
 */
import http from 'node:http'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { keys } from '../../shared/redis/keys.ts'
import { decodeStreamMessage, type StreamMessage } from '../../shared/redis/stream.ts'

/** How long it counts as alive after a heartbeat: longer than a machine stands still. A real edge has less. */
const BELIEVED_MS = 60_000

export interface EdgeStandIn {
  readonly id: string
  readonly seen: StreamMessage[]
  stop(): Promise<void>
}

export async function startEdgeStandIn(options: {
  redisUrl: string
  id: string
  /** Only one of several edges can have the port; the others acknowledge only. */
  challengePort?: number
  onMessage?: (message: StreamMessage) => void
}): Promise<EdgeStandIn> {
  const commands = new Redis(options.redisUrl)
  const blocking = new Redis(options.redisUrl)
  for (const connection of [commands, blocking]) connection.on('error', () => {})
  const challenges = new Map<string, string>()
  const seen: StreamMessage[] = []
  let stopped = false
  let position = '0-0'

  const server = http.createServer((request, response) => {
    const token = /^\/\.well-known\/acme-challenge\/([\w-]+)$/.exec(request.url ?? '')?.[1]
    const answer = token === undefined ? undefined : challenges.get(token)
    response.writeHead(answer === undefined ? 404 : 200).end(answer ?? 'not found')
  })
  if (options.challengePort !== undefined) {
    server.listen(options.challengePort, '127.0.0.1')
    await once(server, 'listening')
  }

  const acknowledge = async (): Promise<void> => {
    await commands.multi().set(keys.edge(options.id), position, 'PX', BELIEVED_MS).sadd(keys.edges, options.id).exec()
  }
  await acknowledge()
  const heartbeat = setInterval(() => void acknowledge().catch(() => {}), 500)

  async function follow(): Promise<void> {
    while (!stopped) {
      const reply = await blocking.xread('BLOCK', 1000, 'STREAMS', keys.log, position).catch(() => null)
      for (const [id, fields] of reply?.[0]?.[1] ?? []) {
        const message = decodeStreamMessage(fields)
        seen.push(message)
        if (message.kind === 'challenge' && message.value !== '') challenges.set(message.name, message.value)
        if (message.kind === 'challenge' && message.value === '') challenges.delete(message.name)
        position = id
        options.onMessage?.(message)
      }
      if (reply) await acknowledge().catch(() => {})
    }
  }
  const following = follow()

  return {
    id: options.id,
    seen,
    async stop() {
      stopped = true
      clearInterval(heartbeat)
      server.closeAllConnections()
      server.close()
      blocking.disconnect()
      await following
      await commands
        .multi()
        .del(keys.edge(options.id))
        .srem(keys.edges, options.id)
        .exec()
        .catch(() => {})
      commands.disconnect()
    },
  }
}
