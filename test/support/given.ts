/** What every process of the service that a test starts is given. */
import { fileURLToPath } from 'node:url'
import { HAS_QUICK_PASSWORDS } from './depth.ts'

/** Sources that another process has compiled before: from the first line on, before it could turn the cache on by itself. */
const COMPILED = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/dropway-tests', import.meta.url)),
}

/** What others do with the machine is no one's business here: a test of an outage sets it to 1. */
const PATIENCE = { PATIENCE: process.env['PATIENCE'] ?? '1' }

const QUICK_PASSWORDS = { NODE_OPTIONS: `--import=${new URL('./quick-passwords-process.ts', import.meta.url)}` }

export const GIVEN: Readonly<Record<string, string>> = HAS_QUICK_PASSWORDS
  ? { ...COMPILED, ...PATIENCE, ...QUICK_PASSWORDS }
  : { ...COMPILED, ...PATIENCE }
