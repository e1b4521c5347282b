/** Tokens of signed-in services, one entry per origin, readable by the owner alone. */
import { chmod, mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { CliError, exitCodes } from './failure.ts'

export interface Credentials {
  readonly client_id: string
  readonly access_token: string
  readonly refresh_token?: string
  /** Milliseconds since the epoch. */
  readonly expires_at: number
  readonly token_endpoint: string
  readonly revocation_endpoint?: string
}

/** A lock older than this was left by a process that died. */
const STALE_LOCK_MS = 30_000
const LOCK_RETRY_MS = 50

export type CredentialStore = ReturnType<typeof createCredentialStore>

export function createCredentialStore(configDir: string) {
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
    read: async (origin: string): Promise<Credentials | undefined> => (await readAll()).get(origin),
    async write(origin: string, credentials: Credentials): Promise<void> {
      await writeAll((await readAll()).set(origin, credentials))
    },
    async remove(origin: string): Promise<void> {
      const all = await readAll()
      if (all.delete(origin)) await writeAll(all)
    },
    /** A refresh token works once: of several processes only one may use it at a time. */
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
      await (await open(lockFile, 'wx', 0o600)).close()
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const age = await stat(lockFile).then(
      (stats) => Date.now() - stats.mtimeMs,
      () => 0,
    )
    if (age > STALE_LOCK_MS) await rm(lockFile, { force: true })
    else await new Promise((resolve) => setTimeout(resolve, LOCK_RETRY_MS))
  }
}
