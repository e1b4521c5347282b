/** The edge. `node edge/main.ts` runs it alone; the supervisor runs it beside control. */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../shared/settings/env.ts'
import { keepFilesPrivate } from '../shared/running/private-files.ts'
import { readEdgeConfig } from './config.ts'

keepFilesPrivate()
// Imported only now and only in part: a worker does not wait for what the primary needs, and the reverse.
enableCompileCache()
try {
  const config = readEdgeConfig(process.env)
  const program = fileURLToPath(import.meta.url)
  const { CHECK_REPLICA, checkReplica, findDamage } = await import('./store/replica/replica-damage.ts')
  if (process.argv[2] === 'worker') (await import('./processes/worker.ts')).runWorker(config)
  else if (process.argv[2] === CHECK_REPLICA) await checkReplica(config.replicaDir)
  else {
    // Found out while the rest is loaded.
    const findingDamage = findDamage(config.replicaDir, program)
    await (await import('./processes/primary.ts')).runPrimary(config, program, findingDamage)
  }
} catch (error) {
  const message = error instanceof ConfigError ? error.message : `The edge could not start: ${(error as Error).message}`
  process.stderr.write(`${message}\n`)
  process.exit(1)
}
