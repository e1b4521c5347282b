/** SECRET_KEY, or on one machine a generated one in DATA_DIR (mode 0600) that every process there finds. */
import { randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { EnvReader } from './env.ts'

const MIN_CHARS = 32

export function readSecretKey(env: EnvReader, dataDir: string): string {
  const given = env.optional('SECRET_KEY')
  if (given === undefined) return generatedKey(dataDir)
  if (given.length < MIN_CHARS) env.problem(`SECRET_KEY must have at least ${MIN_CHARS} characters`, undefined)
  return given
}

/** Two processes may start at once: the link is atomic, the first one wins, both read the winner's key. */
function generatedKey(dataDir: string): string {
  const file = path.join(dataDir, 'secret.key')
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  mkdirSync(dataDir, { recursive: true })
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`
  writeFileSync(draft, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
  try {
    linkSync(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft)
  }
  return readFileSync(file, 'utf8').trim()
}
