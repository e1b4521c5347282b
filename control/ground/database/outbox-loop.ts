/**
 * The loop of who sends what lies in an outbox of Postgres. What was written is sent at once where Postgres tells of it,
 * and at the next poll where it does not: behind a pooler, or while the connection was down.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ListenMeta } from 'postgres'
import type { Log } from '../../../shared/running/log.ts'
import { isBehindPooler, type Pool } from './sql.ts'

export interface OutboxLoop {
  start(): void
  /** Waits for what is being sent. */
  stop(): Promise<void>
  /** Something may be due now. */
  wake(): void
  /** Nothing more is begun. */
  isStopping(): boolean
}

export interface OutboxWork {
  readonly sql: Pool
  readonly log: Log
  /** Where Postgres tells of what was written. */
  readonly channel: string
  readonly pollMs: number
  /** What the log calls it: `mail`. */
  readonly name: string
  /** Sends what is due. */
  sendOut(): Promise<unknown>
  /** What was begun and not waited for. */
  underWay?(): Promise<unknown>
}

export function createOutboxLoop(work: OutboxWork): OutboxLoop {
  const { sql, log, channel, pollMs, name } = work
  let stopping: AbortController | undefined
  let loop: Promise<void> = Promise.resolve()
  let wake: () => void = () => {}

  function listen(): Promise<ListenMeta | undefined> {
    return sql
      .listen(channel, () => wake())
      .catch((error: unknown) => {
        log.warn({ err: error }, `${name} is polled: Postgres does not tell about it`)
        return undefined
      })
  }

  async function run(signal: AbortSignal): Promise<void> {
    const listening = isBehindPooler(sql) ? undefined : listen()
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => (wake = resolve))
      await work
        .sendOut()
        .catch((error: unknown) => log.warn({ err: error }, `the outbox of ${name} could not be read`))
      const pause = new AbortController()
      await Promise.race([
        woken,
        sleep(pollMs, undefined, { signal: AbortSignal.any([signal, pause.signal]) }).catch(() => {}),
      ])
      pause.abort()
    }
    await work.underWay?.()
    await (await listening)?.unlisten().catch(() => {})
  }

  return {
    wake: () => wake(),
    isStopping: () => stopping?.signal.aborted ?? false,
    start() {
      if (stopping) return
      stopping = new AbortController()
      loop = run(stopping.signal)
    },
    async stop() {
      stopping?.abort()
      wake()
      await loop
      stopping = undefined
    },
  }
}
