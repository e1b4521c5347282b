/** What a generator of requests is told, what it tells of each request, and how it is ended. */
import type { Target } from './target.ts'

export interface ThreadOptions {
  readonly thread: number
  readonly target: Target
  readonly connections: number
  readonly streams: number
  readonly seconds: number
}

/** What a generator tells of each request. */
export interface Notes {
  answered(status: number, ms: number, bytes: number): void
  failed(kind: string): void
  /** A failure that was noted turned out to be another's. */
  unfailed(kind: string): void
}

/** A generator under way. */
export interface Generator {
  readonly done: Promise<void>
  stop(): void
}
