/** What every process of the service that a test starts is given: sources that another one has compiled before. */
import { fileURLToPath } from 'node:url'

/** From the first line on; a process that turns the cache on by itself has compiled its own first file by then. */
export const COMPILED = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/dropway-tests', import.meta.url)),
} as const
