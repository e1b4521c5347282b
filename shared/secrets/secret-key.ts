/** SECRET_KEY, or on one machine a generated one in DATA_DIR (mode 0600) that every process there finds. */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import type { EnvReader } from '../settings/env.ts'
import { readOrCreate } from './whole-files.ts'

const MIN_CHARS = 32

export function readSecretKey(env: EnvReader, dataDir: string): string {
  const given = env.optional('SECRET_KEY')
  if (given === undefined) return generatedKey(dataDir)
  if (given.length < MIN_CHARS) env.problem(`SECRET_KEY must have at least ${MIN_CHARS} characters`, undefined)
  return given
}

function generatedKey(dataDir: string): string {
  mkdirSync(dataDir, { recursive: true })
  return readOrCreate(path.join(dataDir, 'secret.key'), () => `${randomBytes(32).toString('hex')}\n`).trim()
}
