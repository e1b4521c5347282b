/** What an earlier supervisor of this DATA_DIR left running when it was killed. It is ended before anything begins. */
import { findOrphans } from '../../../edge/processes/orphans.ts'
import type { SupervisorConfig } from './config.ts'
import { endNoted } from './processes/guard.ts'
import { endProcess, type StopStep } from './processes/processes.ts'

/** Visitors whom a worker of a dead edge still serves have had more time than that already. */
const WORKER_STEPS: readonly StopStep[] = [
  { signal: 'SIGTERM', graceMs: 1000 },
  { signal: 'SIGKILL', graceMs: 2000 },
]

/** Returns how many there were. Workers of an edge come last: while their primary lives, they are not orphans. */
export async function endOrphans({
  dataDir,
  replicaDir,
}: Pick<SupervisorConfig, 'dataDir' | 'replicaDir'>): Promise<number> {
  const children = await endNoted(dataDir)
  const workers = findOrphans(replicaDir)
  await Promise.all(workers.map((pid) => endProcess(pid, WORKER_STEPS)))
  return children + workers.length
}
