/**
 * On one machine the supervisor chooses where Postgres and Redis listen. It notes it in DATA_DIR, so that a process
 * started beside the stack with the same environment (the admin command, one plane alone) finds them too.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'

const schema = z.object({
  databaseUrl: z.string().optional(),
  redisUrl: z.string().optional(),
  /** Process ids by name: supervisor, postgres, redis, control, edge. */
  processes: z.record(z.string(), z.number()),
})

export type LocalServices = z.infer<typeof schema>

const fileIn = (dataDir: string) => path.join(dataDir, 'services.json')

/** What a supervisor last noted; undefined when none runs on this DATA_DIR. */
export function readLocalServices(dataDir: string): LocalServices | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(fileIn(dataDir), 'utf8')))
  } catch {
    return undefined
  }
}

export function noteLocalServices(dataDir: string, services: LocalServices): void {
  const draft = `${fileIn(dataDir)}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(services, undefined, 2)}\n`)
  renameSync(draft, fileIn(dataDir))
}

export function forgetLocalServices(dataDir: string): void {
  rmSync(fileIn(dataDir), { force: true })
}

/** Where Postgres is: DATABASE_URL decides, then the supervisor's note, then the usual place. */
export function localDatabaseUrl(dataDir: string): string {
  return readLocalServices(dataDir)?.databaseUrl ?? path.join(dataDir, 'postgres-socket')
}

export function localRedisUrl(dataDir: string): string {
  return readLocalServices(dataDir)?.redisUrl ?? path.join(dataDir, 'redis.sock')
}
