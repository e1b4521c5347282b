/** The edge. `node edge/main.ts` runs it alone; the supervisor runs it beside control. */
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../shared/env.ts'
import { readEdgeConfig } from './config.ts'
import { runPrimary } from './primary.ts'
import { runWorker } from './worker.ts'

try {
  const config = readEdgeConfig(process.env)
  if (process.argv[2] === 'worker') runWorker(config)
  else await runPrimary(config, fileURLToPath(import.meta.url))
} catch (error) {
  const message = error instanceof ConfigError ? error.message : `The edge could not start: ${(error as Error).message}`
  process.stderr.write(`${message}\n`)
  process.exit(1)
}
