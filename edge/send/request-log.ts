/** Counts every answer; writes one line for a share of them. */
import { withoutToken } from '../../shared/contracts/visit-desk.ts'
import { before } from '../../shared/values/before.ts'
import type { Log } from '../../shared/running/log.ts'
import type { Exchange } from '../context.ts'

export interface RequestLog {
  readonly answered: (exchange: Exchange, status: number) => void
  /** Answers by status since the start. */
  counts(): Record<string, number>
}

export function createRequestLog({ log, sample }: { log: Log; sample: number }): RequestLog {
  const byStatus = new Uint32Array(600)
  return {
    answered(exchange, status) {
      byStatus[status] = (byStatus[status] ?? 0) + 1
      if (sample === 0 || (sample < 1 && Math.random() >= sample)) return
      log.info(
        {
          host: exchange.host,
          method: exchange.method,
          // Queries hold tokens and search terms, and links for guests a secret: they do not belong here.
          path: withoutToken(before(exchange.target, '?')).slice(0, 500),
          status,
          ip: exchange.ip,
          agent: exchange.header('user-agent')?.slice(0, 200),
        },
        'request',
      )
    },
    counts() {
      const counts: Record<string, number> = {}
      for (const [status, count] of byStatus.entries()) if (count > 0) counts[status] = count
      return counts
    },
  }
}
