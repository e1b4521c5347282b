/** What the primary and its workers say to each other. */
import type { UnlockAttempt } from './gate/unlock.ts'
import type { Change } from './store/replica.ts'

export type ToWorker =
  /** Ports: 0 lets the system choose (first worker only). */
  | { readonly type: 'listen'; readonly address: string; readonly httpsPort: number; readonly httpPort: number }
  /** Drop parsed copies of these (without a list: of everything), then confirm. */
  | { readonly type: 'changed'; readonly id: number; readonly changes: readonly Change[] | undefined }
  | { readonly type: 'report'; readonly id: number }
  /** Somebody tried a password at another worker. */
  | { readonly type: 'attempt'; readonly attempt: UnlockAttempt }
  | { readonly type: 'drain' }

export type ToPrimary =
  | { readonly type: 'listening'; readonly httpsPort: number; readonly httpPort: number }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'confirmed'; readonly id: number }
  | { readonly type: 'views'; readonly counts: readonly (readonly [string, number])[] }
  | { readonly type: 'attempt'; readonly attempt: UnlockAttempt }
  | { readonly type: 'report'; readonly id: number; readonly counters: Counters }

/** Of one worker, since it started; gauges are of the moment. */
export interface Counters {
  readonly requests: Readonly<Record<string, number>>
  readonly refusedConnections: number
  readonly http1Connections: number
  readonly http2Connections: number
  readonly networks: number
  readonly heldBytes: number
  readonly cacheBytes: number
  readonly residentBytes: number
  readonly eventLoopDelayP99Ms: number
}
