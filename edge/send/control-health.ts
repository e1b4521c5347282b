/** Whether a control answers at all. Asked when a request has waited for seconds, and before a body is sent to one of several. */
import http from 'node:http'
import { READY_BELIEVED_MS } from '../../shared/control-closing.ts'

export interface ControlHealth {
  /** A control that is about to stop says no while it still answers everything else. */
  isReady(control: string, withinMs: number): Promise<boolean>
  close(): void
}

export function createControlHealth(): ControlHealth {
  // Connections of its own: a question must not wait for those whom it is about.
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 })
  // All requests that wait for a frozen control ask at about the same time: they share one question.
  const asked = new Map<string, { readonly at: number; readonly answer: Promise<boolean> }>()
  return {
    isReady(control, withinMs) {
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

function ask(control: string, withinMs: number, agent: http.Agent): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = http.get(`${control}/healthz`, { agent }, (answer) => {
      answer.resume()
      resolve((answer.statusCode ?? 500) < 500)
    })
    const timer = setTimeout(() => probe.destroy(new Error('no answer')), withinMs)
    probe.on('error', () => resolve(false))
    probe.on('close', () => clearTimeout(timer))
  })
}
