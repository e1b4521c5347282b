/** Asks control whether a token is one of a member: the only question to control that a preview may wait for. */
import { nodeHttp } from '../../shared/http/node-http.ts'
import { patiently } from '../../shared/settings/patience.ts'

const ANSWER_MS = patiently(4000)
/** Questions of one worker at a time: each is a request to control that no visitor of a public drop ever makes. */
const MAX_ASKED = 20

/** What control says of the token, by its status. Any other says nothing: control is busy or away, or the visitor has to wait. */
const SAID: ReadonlyMap<number | undefined, boolean> = new Map([
  [200, true],
  [400, false],
  [401, false],
  [403, false],
  [404, false],
])

/** Undefined: no control has said, or too many questions are under way. */
export type MemberQuestion = (siteId: string, bearer: string, ip: string) => Promise<boolean | undefined>

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
    if (asked >= MAX_ASKED) return undefined
    asked += 1
    try {
      for (const control of controlUrls) {
        const isMembers = SAID.get(await askOne(control, siteId, bearer, ip))
        if (isMembers !== undefined) return isMembers
      }
      return undefined
    } finally {
      asked -= 1
    }
  }
}
