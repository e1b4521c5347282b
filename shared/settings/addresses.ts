/**
 * Settings that a plane is told after it was started. The supervisor starts everything at once: while Postgres and Redis get
 * ready, the planes load their modules, and then hear where both are.
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Env } from './env.ts'

/** What a plane that has to wait for them finds in its environment. */
export const ADDRESSES_FOLLOW: Env = { ADDRESSES_FOLLOW: 'true' }

export function tellAddresses(child: Pick<ChildProcess, 'connected' | 'send'>, addresses: Env): void {
  if (child.connected) child.send({ addresses }, () => {})
}

/** The environment of this process, once they are known and in it; children inherit it whole. */
export async function awaitAddresses(self: NodeJS.Process = process): Promise<Env> {
  if (self.env['ADDRESSES_FOLLOW'] === undefined) return self.env
  delete self.env['ADDRESSES_FOLLOW']
  // Without a supervisor no one says them any more.
  const leave = (): never => self.exit(0)
  self.once('disconnect', leave)
  const [{ addresses }] = (await once(self, 'message')) as [{ addresses: Env }]
  self.off('disconnect', leave)
  return Object.assign(self.env, addresses)
}
