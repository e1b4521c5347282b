/** A certificate for localhost and the authority that made it, for receivers that a stack is told to trust. */
import { openLocalCa } from '../../certs/local/local-ca.ts'
import { systemClock } from '../../shared/running/clock.ts'

export function makeTlsIdentity(folder: string): { cert: string; key: string; root: string } {
  const ca = openLocalCa(folder, systemClock)
  return { ...ca.mint(['localhost']), root: ca.rootPem }
}
