/**
 * Questions to a name server. The library waits less and less for one that has answered quickly before; one that is silent
 * for a second is asked again until it has had the whole time.
 */
import { SECOND_MS } from '../running/clock.ts'

/** For `Resolver`. */
export const DNS_QUESTION = { timeout: 2 * SECOND_MS, tries: 2 } as const
const WHOLE_MS = DNS_QUESTION.timeout * DNS_QUESTION.tries

/** Fails as the query does, with ETIMEOUT only when the servers had that time. */
export async function askDns<Answer>(query: () => Promise<Answer>): Promise<Answer> {
  const deadline = performance.now() + WHOLE_MS
  for (;;) {
    try {
      return await query()
    } catch (error) {
      const isSilent = (error as NodeJS.ErrnoException).code === 'ETIMEOUT'
      if (!isSilent || performance.now() >= deadline) throw error
    }
  }
}
