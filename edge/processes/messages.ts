/** What the primary and its workers say to each other. */
import type { SeenPage } from '../context.ts'
import type { UnlockAttempt } from '../gate/unlock.ts'
import type { Change } from '../store/replica/replica.ts'

export type ToWorker =
  /** Ports: 0 lets the system choose (first worker only). */
  | { readonly type: 'listen'; readonly address: string; readonly httpsPort: number; readonly httpPort: number }
  /** Drop parsed copies of these (without a list: of everything), then confirm. */
  | { readonly type: 'changed'; readonly id: number; readonly changes: readonly Change[] | undefined }
  /** With `isScrape`, delays are counted anew from here on. */
  | { readonly type: 'report'; readonly id: number; readonly isScrape: boolean }
  /** A visitor tried a password at another worker. */
  | { readonly type: 'attempt'; readonly attempt: UnlockAttempt }
  | { readonly type: 'drain' }

/** Between the messages of the primary, see shared/running/watchdog/heartbeat.ts. */
export interface Ping {
  readonly ping: number
}
export interface Pong {
  readonly pong: number
}

export function isPing(message: object): message is Ping {
  return 'ping' in message
}

export function isPong(message: object): message is Pong {
  return 'pong' in message
}

export type ToPrimary =
  | { readonly type: 'listening'; readonly httpsPort: number; readonly httpPort: number }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'confirmed'; readonly id: number }
  /** `visits`: as Redis keeps them, see shared/redis/keys.ts. */
  | {
      readonly type: 'views'
      readonly pages: readonly SeenPage[]
      readonly visits: readonly (readonly [string, number])[]
    }
  | { readonly type: 'attempt'; readonly attempt: UnlockAttempt }
  | { readonly type: 'report'; readonly id: number; readonly counters: Counters }

/** What one worker has counted since it started; gauges are of the moment. */
export interface Counters {
  readonly requests: Readonly<Record<string, number>>
  readonly refusedConnections: number
  readonly http1Connections: number
  readonly http2Connections: number
  readonly networks: number
  readonly heldBytes: number
  readonly cacheBytes: number
  readonly residentBytes: number
  readonly pid: number
  /** Since the last scrape. */
  readonly eventLoopDelay: { readonly p999Ms: number; readonly maxMs: number }
  /** Requests that control is answering. */
  readonly proxiedRequests: number
}
