/** SECRET_KEY, or on one machine a generated one in DATA_DIR (mode 0600) that every process there finds. */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import type { EnvReader } from '../settings/env.ts'
import { readOrCreate } from './whole-files.ts'

const MIN_CHARS = 32
/** What is generated is written in twice as many characters. */
const GENERATED_BYTES = 32

export function readSecretKey(env: EnvReader, dataDir: string): string {
  const given = env.optional('SECRET_KEY')
  if (given === undefined) return generatedKey(env, dataDir)
  if (given.length < MIN_CHARS) env.problem(`SECRET_KEY must have at least ${MIN_CHARS} characters`, undefined)
  return given
}

function generatedKey(env: EnvReader, dataDir: string): string {
  mkdirSync(dataDir, { recursive: true })
  const file = path.join(dataDir, 'secret.key')
  const key = readOrCreate(file, () => `${randomBytes(GENERATED_BYTES).toString('hex')}\n`).trim()
  if (isWhole(key)) return key
  return env.problem(
    `${file} holds no whole key. If nothing was published here yet, delete it and start again; otherwise bring it back from your copy, or set SECRET_KEY`,
    key,
  )
}

/** A power cut may leave a file without its bytes, or with zeroes in their place. */
function isWhole(key: string): boolean {
  return key.length >= 2 * GENERATED_BYTES && /^[!-~]+$/.test(key)
}
