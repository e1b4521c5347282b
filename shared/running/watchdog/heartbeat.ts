/**
 * A parent asks its child whether the child's event loop turns: `{ ping: n }` over the channel, answered with
 * `{ pong: n }`. For what a process cannot notice about itself: that it is stopped as a whole.
 */
import type { ChildProcess } from 'node:child_process'

const PING_MS = 1000
/**
 * Unanswered pings in a row until the child counts as hung. Counted, not timed: a parent that was itself held up has not
 * asked. More than the watchdog's ten seconds, so that a process that can say where it hangs has said it.
 */
const MAX_UNANSWERED = 13

/** The child's side: answers every ping from the event loop. */
export function answerPings(self: NodeJS.Process = process): void {
  self.on('message', (message: unknown) => {
    const ping = (message as { ping?: unknown } | null)?.ping
    if (typeof ping === 'number' && self.connected) self.send?.({ pong: ping }, undefined, undefined, () => {})
  })
}

/** The parent's side: calls `onSilence` once when the child does not answer any more. Returns how to stop asking. */
export function askForPongs(
  child: Pick<ChildProcess, 'connected' | 'send' | 'on'>,
  onSilence: () => void,
  { pingMs = PING_MS, maxUnanswered = MAX_UNANSWERED }: { pingMs?: number; maxUnanswered?: number } = {},
): () => void {
  let sent = 0
  let answered = 0
  child.on('message', (message) => {
    const pong = (message as { pong?: unknown } | null)?.pong
    if (typeof pong === 'number') answered = Math.max(answered, pong)
  })
  const timer = setInterval(() => {
    if (sent - answered >= maxUnanswered) {
      clearInterval(timer)
      onSilence()
      return
    }
    if (child.connected) child.send({ ping: ++sent }, () => {})
  }, pingMs)
  timer.unref()
  return () => clearInterval(timer)
}
