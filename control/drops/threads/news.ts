/**
 * Open review pages hear at once that something was said: the edges follow the change log, and tell the streams of the
 * drop. It is no more than a hint, sent once and not waited for; a page that missed it asks by itself within seconds.
 */
import type { Redis } from 'ioredis'
import { siteHost } from '../../../shared/http/hosts.ts'
import { keys, LOG_LENGTH } from '../../../shared/redis/keys.ts'
import { encodeStreamMessage } from '../../../shared/redis/stream.ts'
import type { Review } from './review.ts'
import type { Reviewer } from './reviewer.ts'

interface ThreadNewsDependencies {
  readonly redis: Pick<Redis, 'xadd'>
  readonly sitesDomain: string
  /** Whether every live edge reads such news: one of the release before would take it for a broken record. */
  edgesReadThreads(): boolean
}

export type TellTabs = (slug: string) => void

export function createThreadNews({ redis, sitesDomain, edgesReadThreads }: ThreadNewsDependencies): TellTabs {
  return (slug) => {
    if (!edgesReadThreads()) return
    const message = encodeStreamMessage({ kind: 'threads', name: siteHost(slug, sitesDomain), value: '' })
    redis.xadd(keys.log, 'MAXLEN', '~', LOG_LENGTH, '*', ...message).catch(() => {})
  }
}

/** The same service, whose every change is told. */
export function tellingTabs(review: Review, tell: TellTabs): Review {
  const told =
    <Rest extends readonly unknown[], Result>(deed: (reviewer: Reviewer, ...rest: Rest) => Promise<Result>) =>
    async (reviewer: Reviewer, ...rest: Rest): Promise<Result> => {
      const result = await deed(reviewer, ...rest)
      tell(reviewer.site.slug)
      return result
    }
  return {
    ...review,
    open: told(review.open),
    reply: told(review.reply),
    change: told(review.change),
    replyAll: told(review.replyAll),
    edit: told(review.edit),
    remove: told(review.remove),
  }
}
