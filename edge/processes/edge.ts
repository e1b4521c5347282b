/** A process of the edge: its primary, one of the workers that the primary starts, or a look at the replica before either. */
import { ConfigError, OPERATOR_NEEDED, type Env } from '../../shared/settings/env.ts'
import { keepFilesPrivate } from '../../shared/secrets/private-files.ts'
import { readEdgeConfig } from '../config.ts'

interface EdgeProcess {
  readonly env: Env
  /** What the primary says to those that it starts. */
  readonly part: string | undefined
  /** The file that starts them. */
  readonly program: string
  /** The same environment with what a supervisor says later. */
  awaitAddresses(): Promise<Env>
}

export async function runEdge({ env, part, program, awaitAddresses }: EdgeProcess): Promise<void> {
  keepFilesPrivate()
  try {
    const config = readEdgeConfig(env)
    // Imported only now and only in part: a worker does not wait for what the primary needs, and the reverse.
    const { CHECK_REPLICA, checkReplica, findDamage } = await import('../store/replica/replica-damage.ts')
    if (part === 'worker') (await import('./worker.ts')).runWorker(config)
    else if (part === CHECK_REPLICA) await checkReplica(config.replicaDir)
    else {
      // Found out while the rest is loaded.
      const findingDamage = findDamage(config.replicaDir, program)
      const { runPrimary } = await import('./primary.ts')
      await runPrimary(readEdgeConfig(await awaitAddresses()), program, findingDamage)
    }
  } catch (error) {
    const isConfig = error instanceof ConfigError
    const message = isConfig ? error.message : `The edge could not start: ${(error as Error).message}`
    process.stderr.write(`${message}\n`)
    process.exit(isConfig ? OPERATOR_NEEDED : 1)
  }
}
