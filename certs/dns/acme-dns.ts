/**
 * Records at an acme-dns server, which keeps the last two values of a name that is made for nothing else. The operator
 * points `_acme-challenge.<name>` there with a CNAME, once. Nothing is ever removed: a third value takes the first's place.
 */
import { SECOND_MS } from '../../shared/running/clock.ts'
import type { RecordKeeper } from './record-keeper.ts'
import type { AcmeDnsSettings } from './settings.ts'

const ANSWER_TIMEOUT_MS = 15 * SECOND_MS
const MAX_QUOTED_CHARS = 200

export function createAcmeDns({ url, account }: Pick<AcmeDnsSettings, 'url' | 'account'>): RecordKeeper {
  const { fulldomain, subdomain, username, password } = account
  const isOurs = (name: string): boolean => name === fulldomain.toLowerCase()
  return {
    covers: async (name) => isOurs(name),
    async present({ asked, name, value }) {
      if (!isOurs(name))
        throw new Error(`${asked} does not lead to acme-dns: set the record "${asked} CNAME ${fulldomain}"`)
      const answer = await fetch(`${url}/update`, {
        method: 'POST',
        headers: { 'x-api-user': username, 'x-api-key': password, 'content-type': 'application/json' },
        body: JSON.stringify({ subdomain, txt: value }),
        redirect: 'error',
        signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      }).catch((error: unknown) => {
        throw new Error(`acme-dns at ${url} does not answer: ${(error as Error).message}`, { cause: error })
      })
      const said = (await answer.text().catch(() => '')).slice(0, MAX_QUOTED_CHARS)
      if (answer.ok) return
      const hint = answer.status === 401 ? ': correct DNS01_ACME_DNS_ACCOUNT' : ''
      throw new Error(`acme-dns at ${url} did not take the record (status ${answer.status} ${said})${hint}`)
    },
    remove: async () => {},
  }
}
