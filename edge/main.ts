/** The edge. `node edge/main.ts` runs it alone; the supervisor runs it beside control. */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../shared/env.ts'
import { readEdgeConfig } from './config.ts'

// Imported only now and only in part: a worker does not wait for what the primary needs, and the reverse.
enableCompileCache()
try {
  const config = readEdgeConfig(process.env)
  if (process.argv[2] === 'worker') (await import('./worker.ts')).runWorker(config)
  else await (await import('./primary.ts')).runPrimary(config, fileURLToPath(import.meta.url))
} catch (error) {
  const message = error instanceof ConfigError ? error.message : `The edge could not start: ${(error as Error).message}`
  process.stderr.write(`${message}\n`)
  process.exit(1)
}
