/** What every process of the service that a test starts is given. */
import { fileURLToPath } from 'node:url'
import { HAS_QUICK_PASSWORDS } from './depth.ts'
import { HAS_LATE_ANSWERS } from './late-answers.ts'

/** Sources that another process has compiled before: from the first line on, before it could turn the cache on by itself. */
const COMPILED = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/dropway-tests', import.meta.url)),
}

/** What others do with the machine is no one's business here: a test of an outage sets it to 1. */
const PATIENCE = { PATIENCE: process.env['PATIENCE'] ?? '1' }

const CHANGED = { NODE_OPTIONS: `--import=${new URL('./given-process.ts', import.meta.url)}` }

const NAMES = ['QUICK_PASSWORDS', 'LATE_ANSWERS'] as const
const OWN = Object.fromEntries(
  NAMES.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
)

export const GIVEN: Readonly<Record<string, string>> = {
  ...COMPILED,
  ...PATIENCE,
  ...(HAS_QUICK_PASSWORDS || HAS_LATE_ANSWERS ? { ...OWN, ...CHANGED } : {}),
}
