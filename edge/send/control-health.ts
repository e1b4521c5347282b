/** How a control is. Asked when a request has waited for seconds, and before a body is sent to one of several. */
import type { Agent } from 'node:http'
import { READY_BELIEVED_MS } from '../../shared/contracts/control-closing.ts'
import { nodeHttp } from '../../shared/http/node-http.ts'

/** One that is leaving takes no more requests, or says that it soon will, and finishes those that it has. */
export type ControlState = 'ready' | 'leaving' | 'silent'

export interface ControlHealth {
  stateOf(control: string, withinMs: number): Promise<ControlState>
  close(): void
}

export function createControlHealth(): ControlHealth {
  // Connections of its own: a question must not wait for those whom it is about.
  const agent = new nodeHttp.Agent({ keepAlive: true, maxSockets: 8 })
  // All requests that wait for a frozen control ask at about the same time: they share one question.
  const asked = new Map<string, { readonly at: number; readonly answer: Promise<ControlState> }>()
  return {
    stateOf(control, withinMs) {
      const key = `${control} ${withinMs}`
      const known = asked.get(key)
      if (known !== undefined && performance.now() - known.at < READY_BELIEVED_MS) return known.answer
      const answer = ask(control, withinMs, agent)
      asked.set(key, { at: performance.now(), answer })
      return answer
    },
    close: () => agent.destroy(),
  }
}

function ask(control: string, withinMs: number, agent: Agent): Promise<ControlState> {
  return new Promise((resolve) => {
    const probe = nodeHttp.get(`${control}/healthz`, { agent }, (answer) => {
      answer.resume()
      resolve((answer.statusCode ?? 500) < 500 ? 'ready' : 'leaving')
    })
    const timer = setTimeout(() => {
      resolve('silent')
      probe.destroy()
    }, withinMs)
    // Refused: it listens no longer. What it has under way would have ended with the process.
    probe.on('error', () => resolve('leaving'))
    probe.on('close', () => clearTimeout(timer))
  })
}
