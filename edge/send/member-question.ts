/** Asks control whether a token is one of a member: the only question to control that a preview may wait for. */
import { nodeHttp } from '../../shared/http/node-http.ts'

const ANSWER_MS = 4000
/** Questions of one worker at a time: each is a request to control that no visitor of a public drop ever makes. */
const MAX_ASKED = 20

export type MemberQuestion = (siteId: string, bearer: string, ip: string) => Promise<boolean>

export function createMemberQuestion(controlUrls: readonly string[], publicHost: string): MemberQuestion {
  const agent = new nodeHttp.Agent({ keepAlive: true, maxSockets: MAX_ASKED })
  let asked = 0

  function askOne(control: string, siteId: string, bearer: string, ip: string): Promise<number | undefined> {
    return new Promise((resolve) => {
      const headers = { host: publicHost, authorization: `Bearer ${bearer}`, 'x-forwarded-for': ip }
      const path = `${control}/api/v1/sites/${encodeURIComponent(siteId)}/pass`
      const request = nodeHttp.get(path, { agent, headers, timeout: ANSWER_MS }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
      request.on('timeout', () => request.destroy())
      request.on('error', () => resolve(undefined))
    })
  }

  return async (siteId, bearer, ip) => {
    if (asked >= MAX_ASKED) return false
    asked += 1
    try {
      for (const control of controlUrls) {
        const status = await askOne(control, siteId, bearer, ip)
        if (status !== undefined && status < 500) return status === 200
      }
      return false
    } finally {
      asked -= 1
    }
  }
}
