/** The line on which an edge asks control about a visitor who is not in yet. Who is in never waits for it. */
import type { Agent } from 'node:http'
import { nodeHttp } from '../../shared/http/node-http.ts'
import {
  VISIT_DESK_PATH,
  visitAnswerSchema,
  type VisitAnswer,
  type VisitQuestion,
} from '../../shared/contracts/visit-desk.ts'
import { patiently } from '../../shared/settings/patience.ts'

/** A person waits for it. */
const ANSWER_MS = patiently(8000)
const MAX_ANSWER_BYTES = 10_000

export interface VisitLine {
  /** Rejects when no control answers in time. `ip`: the visitor's. */
  ask(question: VisitQuestion, ip: string): Promise<VisitAnswer>
  close(): void
}

export interface VisitLineDependencies {
  readonly controlUrls: readonly [string, ...string[]]
  /** `host[:port]` as the service is known to the world. */
  readonly publicHost: string
}

export function createVisitLine({ controlUrls, publicHost }: VisitLineDependencies): VisitLine {
  // A kept connection may end just as a question goes out on it, and a code must not be tried twice.
  const agent = new nodeHttp.Agent({ keepAlive: false })
  return {
    async ask(question, ip) {
      let failure: unknown
      for (const control of controlUrls) {
        try {
          return await askOne(`${control}${VISIT_DESK_PATH}`, question, {
            agent,
            headers: { host: publicHost, 'x-forwarded-for': ip, 'x-forwarded-proto': 'https' },
          })
        } catch (error) {
          // One that does not listen has not heard the question; any other may have.
          if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') throw error
          failure = error
        }
      }
      throw failure
    },
    close: () => agent.destroy(),
  }
}

function askOne(
  url: string,
  question: VisitQuestion,
  { agent, headers }: { agent: Agent; headers: Record<string, string> },
): Promise<VisitAnswer> {
  const body = JSON.stringify(question)
  return new Promise((resolve, reject) => {
    const outgoing = nodeHttp.request(url, {
      method: 'POST',
      agent,
      headers: { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    outgoing.on('error', reject)
    outgoing.on('response', (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('error', reject)
      answer.on('data', (piece: string) => {
        text += piece
        if (text.length > MAX_ANSWER_BYTES) answer.destroy(new Error('control said too much'))
      })
      answer.on('end', () => {
        if (answer.statusCode !== 200) return reject(new Error(`control answered ${answer.statusCode}`))
        try {
          resolve(visitAnswerSchema.parse(JSON.parse(text)))
        } catch (error) {
          reject(error as Error)
        }
      })
    })
    outgoing.end(body)
  })
}
