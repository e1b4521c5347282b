/**
 * What happens to domains by itself: due checks run, and the change log tells when the edges have a certificate.
 * What the log told while no control listened is caught up with at the start and with every check.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { endOfLog } from '../../ground/routing/redis.ts'
import { SECOND_MS } from '../../../shared/running/clock.ts'
import { keys } from '../../../shared/redis/keys.ts'
import type { Log } from '../../../shared/running/log.ts'
import { openBlocking } from '../../../shared/redis/redis.ts'
import { decodeStreamMessage } from '../../../shared/redis/stream.ts'
import type { Domains } from './domains.ts'

const BLOCK_MS = 5 * SECOND_MS
const RECONNECT_MS = 500
const COPY_STATE_EVERY_MS = 15 * SECOND_MS
const MAX_PAUSE_MS = SECOND_MS
const LOG_BATCH = 500

export interface DomainWatch {
  start(): void
  stop(): Promise<void>
}

export interface DomainWatchDependencies {
  domains: Pick<Domains, 'runDueChecks' | 'certificateChanged' | 'catchUp' | 'mirror'>
  redis: Redis
  log: Log
  /** First pause between two checks of one domain; due ones are looked for at least as often. */
  checkMs: number
}

export function createDomainWatch({ domains, redis, log, checkMs }: DomainWatchDependencies): DomainWatch {
  let stopped = true
  let blocking: Redis | undefined
  const stopping = new AbortController()
  const shortPauseMs = Math.min(checkMs, MAX_PAUSE_MS)
  let loops: Promise<unknown> = Promise.resolve()

  const pause = (ms: number): Promise<void> =>
    sleep(ms, undefined, { signal: stopping.signal, ref: false }).catch(() => {})

  /** Runs until stopped; an outage is reported once, not with every attempt. */
  async function forever(what: string, pauseMs: number, work: () => Promise<void>): Promise<void> {
    let failing = false
    while (!stopped) {
      try {
        await work()
        failing = false
      } catch (error) {
        if (!failing && !stopped) log.warn({ err: error }, what)
        failing = true
      }
      await pause(pauseMs)
    }
  }

  async function follow(): Promise<void> {
    // A connection of its own, since it blocks; its errors reach the commands.
    blocking = openBlocking(redis, 2 * BLOCK_MS)
    blocking.on('error', () => {})
    try {
      let position = await endOfLog(blocking)
      await domains.catchUp()
      while (!stopped) {
        const reply = await blocking.xread('COUNT', LOG_BATCH, 'BLOCK', BLOCK_MS, 'STREAMS', keys.log, position)
        for (const [id, fields] of reply?.[0]?.[1] ?? []) {
          position = id
          await handle(fields)
        }
        // The log tells of every publish too: what comes in a moment is read together.
        await pause(shortPauseMs)
      }
    } finally {
      blocking.disconnect()
    }
  }

  async function handle(fields: string[]): Promise<void> {
    const message = decodeStreamMessage(fields)
    if (message.kind !== 'certificate') return
    await domains
      .certificateChanged(message.name, message.value)
      .catch((error: unknown) =>
        log.warn(
          { err: error, domain: message.name },
          'news of a certificate could not be acted on; the next check will',
        ),
      )
  }

  return {
    start() {
      stopped = false
      loops = Promise.all([
        forever('domains cannot be checked', shortPauseMs, async () => {
          while ((await domains.runDueChecks()) > 0 && !stopped);
        }),
        forever('certificates cannot be followed', RECONNECT_MS, follow),
        forever('the state of certificates cannot be copied', COPY_STATE_EVERY_MS, () => domains.mirror.copyState()),
      ])
    },
    async stop() {
      stopped = true
      stopping.abort()
      blocking?.disconnect()
      await Promise.race([loops, sleep(2 * SECOND_MS, undefined, { ref: false })])
    },
  }
}
