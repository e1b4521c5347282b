/** Tokens of signed-in services, one entry per origin, readable by the owner alone. */
import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { CliError, exitCodes } from '../../terminal/failure.ts'

export interface Credentials {
  readonly client_id: string
  readonly access_token: string
  readonly refresh_token?: string
  /** Milliseconds since the epoch. */
  readonly expires_at: number
  readonly token_endpoint: string
  readonly revocation_endpoint?: string
}

/** A lock older than this was left by a process that died elsewhere. */
const STALE_LOCK_MS = 30_000
const LOCK_RETRY_MS = 50

export interface CredentialStore {
  readonly file: string
  read(origin: string): Promise<Credentials | undefined>
  write(origin: string, credentials: Credentials): Promise<void>
  remove(origin: string): Promise<void>
  /** A refresh token works once: of several processes only one may use it at a time. */
  locked<Result>(work: () => Promise<Result>): Promise<Result>
}

export function createCredentialStore(configDir: string): CredentialStore {
  const file = path.join(configDir, 'credentials.json')
  const lockFile = path.join(configDir, 'credentials.lock')

  async function readAll(): Promise<Map<string, Credentials>> {
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '{}'
      throw error
    })
    try {
      return new Map(Object.entries(JSON.parse(text) as Record<string, Credentials>))
    } catch {
      throw new CliError(
        `"${file}" is damaged. Delete it and run "dropway login" again.`,
        exitCodes.failed,
        'damaged_credentials',
      )
    }
  }

  async function writeAll(all: ReadonlyMap<string, Credentials>): Promise<void> {
    await mkdir(configDir, { recursive: true, mode: 0o700 })
    const temporary = `${file}.${process.pid}`
    await writeFile(temporary, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`, { mode: 0o600 })
    await chmod(temporary, 0o600)
    await rename(temporary, file)
  }

  return {
    file,
    read: async (origin) => (await readAll()).get(origin),
    async write(origin, credentials) {
      await writeAll((await readAll()).set(origin, credentials))
    },
    async remove(origin) {
      const all = await readAll()
      if (all.delete(origin)) await writeAll(all)
    },
    async locked<Result>(work: () => Promise<Result>): Promise<Result> {
      await mkdir(configDir, { recursive: true, mode: 0o700 })
      await acquire(lockFile)
      try {
        return await work()
      } finally {
        await rm(lockFile, { force: true })
      }
    },
  }
}

async function acquire(lockFile: string): Promise<void> {
  for (;;) {
    try {
      await writeFile(lockFile, String(process.pid), { flag: 'wx', mode: 0o600 })
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    if (await isAbandoned(lockFile)) await rm(lockFile, { force: true })
    else await new Promise((resolve) => setTimeout(resolve, LOCK_RETRY_MS))
  }
}

/** Its process was killed; on another machine with the same home folder, only its age tells. */
async function isAbandoned(lockFile: string): Promise<boolean> {
  try {
    const { mtimeMs } = await stat(lockFile)
    if (Date.now() - mtimeMs > STALE_LOCK_MS) return true
    const pid = Number(await readFile(lockFile, 'utf8'))
    if (!Number.isInteger(pid) || pid <= 0) return false
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
