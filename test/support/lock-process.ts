/** A process that takes a DATA_DIR and holds it until it is killed: `node lock-process.ts <DATA_DIR>` says whether it has it. */
import { lockDataDir } from '../../control/operations/supervisor/preflight.ts'

try {
  const unlock = lockDataDir(process.argv[2]!)
  process.on('exit', unlock)
  process.send?.('held')
  setInterval(() => {}, 1000)
} catch (error) {
  process.send?.((error as Error).message)
}
