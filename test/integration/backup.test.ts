/** Certificates, the ACME account, counters and the operator's texts come back too; a damaged backup changes nothing. */
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { takeBackup, type BackupContext } from '../../control/plans/backups/backup.ts'
import { runDrill } from '../../control/plans/backups/drill.ts'
import { inSnapshot, openBackupPlace, type BackupPlace } from '../../control/plans/backups/place.ts'
import { restoreBackup } from '../../control/plans/backups/restore.ts'
import { drillId } from '../../control/plans/backups/rules.ts'
import { openDatabase } from '../../control/ground/database/sql.ts'
import { readHistory } from '../../control/ground/routing/queries.ts'
import { BlobMissing } from '../../shared/blobs/blob-store.ts'
import { createDirectoryBlobStore } from '../../shared/blobs/directory-store.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

let folder: string
let from: TestDatabase
let to: TestDatabase

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-backup-rows-'))
  ;[from, to] = await Promise.all([createTestDatabase(), createTestDatabase()])
})

afterAll(async () => {
  await Promise.all([from.close(), to.close()])
  await rm(folder, { recursive: true, force: true })
})

function contextOf({ sql }: TestDatabase, name: string): BackupContext {
  return {
    sql,
    blobs: createDirectoryBlobStore(path.join(folder, `${name}-blobs`)),
    secrets: createSecrets('k'.repeat(32)),
    dataDir: path.join(folder, name),
    sitesDomain: 'drops.test',
    now: Date.now(),
  }
}

test("every row of every table, sequences that go on behind them, and the operator's own texts", async () => {
  const rows = {
    certificates: {
      name: 'www.example.test',
      sealed: 's1.abc\ttab\nline\\N',
      not_before: new Date(0),
      not_after: new Date(1),
    },
    acme_account: { only_row: true, sealed: 's1.account' },
    certificate_retries: { name: 'x.test', state: from.sql.json({ attempts: 2 }) },
    throttles: { key: 'a "quoted" key', count: 3, resets_at: new Date(5) },
  }
  for (const [table, row] of Object.entries(rows)) await from.sql`insert into ${from.sql(table)} ${from.sql(row)}`
  await from.sql`insert into audit_log (actor, action, subject) values ('operator', 'test', 'x')`
  await from.sql`insert into routes (host, record, revision) values ('a.drops.test', ${from.sql.json({ revision: 7 })}, 7)`
  const place = openBackupPlace(path.join(folder, 'backup'), folder)
  await mkdir(path.join(folder, 'from', 'pages'), { recursive: true })
  await writeFile(path.join(folder, 'from', 'pages', 'terms.md'), '# Our terms ✓\n')
  await takeBackup(contextOf(from, 'from'), place)
  await restoreBackup(contextOf(to, 'to'), place, undefined)

  for (const table of Object.keys(rows)) {
    const read = ({ sql }: TestDatabase) => sql`select * from ${sql(table)}`
    expect([...(await read(to))]).toEqual([...(await read(from))])
  }
  expect(await readFile(path.join(folder, 'to', 'pages', 'terms.md'), 'utf8')).toBe('# Our terms ✓\n')
  const [route] = await to.sql`select revision, record from routes`
  expect(route).toEqual({ revision: 7, record: { revision: 7 } })
  // The history came along, of another life: the first publication begins a new one.
  expect(await readHistory(to.sql)).toMatchObject({ ofThisLife: false })
  const [next] = await to.sql`insert into audit_log (actor, action, subject) values ('a', 'b', 'c') returning id`
  expect(next!['id']).toBe(2)
})

test("a new machine whose edge has ordered the service's own certificate already can be restored into", async () => {
  const started = await createTestDatabase()
  try {
    const place = openBackupPlace(path.join(folder, 'before-loss'), folder)
    await takeBackup(contextOf(from, 'from'), place)
    const own = { name: '*.drops.test', sealed: 's1.own', not_before: new Date(0), not_after: new Date(1) }
    await started.sql`insert into certificates ${started.sql(own)}`
    await restoreBackup(contextOf(started, 'started'), place, undefined)
    const names = ({ sql }: TestDatabase) => sql`select name from certificates`
    expect([...(await names(started))]).toEqual([...(await names(from))])
  } finally {
    await started.close()
  }
})

test('content is copied while the tables are free for migrations; a control that stops ends it', async () => {
  const busy = await createTestDatabase()
  try {
    const context = contextOf(busy, 'busy')
    const hashes = await Promise.all(['one', 'two'].map((text) => store(context, text)))
    await insertDrop(busy, hashes)
    const place = openBackupPlace(path.join(folder, 'busy-backup'), folder)
    const stopping = new AbortController()
    const asked: string[] = []
    const has = async (hash: string): Promise<boolean> => {
      asked.push(hash)
      await busy.sql.begin((sql) => sql`lock table kept_blobs in access exclusive mode nowait`)
      stopping.abort()
      return place.blobs.has(hash)
    }
    const taken = takeBackup({ ...context, stopping: stopping.signal }, { ...place, blobs: { ...place.blobs, has } })
    await expect(taken).rejects.toThrow('stopped on the way')
    expect(asked).toHaveLength(1)
    expect(await readdir(path.join(folder, 'busy-backup', 'snapshots'))).toEqual([])
    expect((await takeBackup(context, place)).facts.blobs).toBe(2)
  } finally {
    await busy.close()
  }
})

/** A drop of an account, which keeps this content. */
async function insertDrop({ sql }: TestDatabase, hashes: readonly string[]): Promise<void> {
  await sql`insert into users (id, email, password_hash) values ('user', 'user@example.com', '')`
  await sql`insert into organisations (id, name, owner_id) values ('org', 'Org', 'user')`
  await sql`insert into sites (id, org_id, slug, dns_target, next_version_number) values ('site', 'org', 'site', 'site', 1)`
  for (const hash of hashes) await sql`insert into kept_blobs ${sql({ site_id: 'site', hash, size: 3 })}`
}

async function store({ blobs }: BackupContext, text: string): Promise<string> {
  const writer = await blobs.writer()
  await writer.write(Buffer.from(text))
  return (await writer.finish()).hash
}

test('a drill removes what killed ones left, and nothing of one that is at work', async () => {
  const context = contextOf(from, 'drilled')
  const place = openBackupPlace(path.join(folder, 'drill-backup'), folder)
  await takeBackup(contextOf(from, 'from'), place)
  const killed = drillId(context.now - 3_600_000, '1111')
  const atWork = drillId(context.now - 3_600_000, '2222')
  const begins = drillId(context.now, '3333')
  const ids = [killed, atWork, begins]
  for (const id of ids) {
    await mkdir(path.join(context.dataDir, `drill-${id}`, 'blobs'), { recursive: true })
    await from.sql.unsafe(`create database dropway_drill_${id}`)
  }
  // Nothing says whether one with a database of the operator's is at work, but none takes two days.
  const given = [48, 47].map((hours) => `drill-given-${drillId(context.now - hours * 3_600_000, '4444')}`)
  for (const name of given) await mkdir(path.join(context.dataDir, name, 'blobs'), { recursive: true })
  const url = `${from.url.split('?')[0]}?database=dropway_drill_${atWork}`
  const other = openDatabase({ url, maxConnections: 1 })
  try {
    await other`select`
    await runDrill({ context, place, snapshot: undefined, databaseUrl: from.url, scratchUrl: undefined })
    const left = await from.sql<{ id: string }[]>`
      select right(datname, 12) as id from pg_database where right(datname, 12) = any(${ids}) order by datname`
    expect(left.map(({ id }) => id)).toEqual([atWork, begins])
    expect((await readdir(context.dataDir)).toSorted()).toEqual([`drill-${atWork}`, `drill-${begins}`, given[1]])
  } finally {
    await other.end()
    for (const id of ids) await from.sql.unsafe(`drop database if exists dropway_drill_${id}`)
  }
})

test('drafts that a killed backup left go; those of one that is at work stay', async () => {
  const drafts = path.join(folder, 'backup-drafts')
  const place = openBackupPlace('s3://key:secret@bucket?endpoint=http://127.0.0.1:9', drafts)
  await mkdir(path.join(drafts, 'blobs'), { recursive: true })
  for (const name of ['old', 'new', 'blobs/old', 'blobs/new']) {
    await writeFile(path.join(drafts, name), 'half')
    if (name.endsWith('old')) await utimes(path.join(drafts, name), new Date(1000), new Date(1000))
  }
  await place.sweep(2000)
  expect((await readdir(drafts, { recursive: true })).toSorted()).toEqual(['blobs', 'blobs/new', 'new'])
})

test('a damaged backup leaves the installation as it was', async () => {
  const empty = await createTestDatabase()
  try {
    const directory = path.join(folder, 'damaged')
    const place = openBackupPlace(directory, folder)
    const { name } = await takeBackup(contextOf(from, 'from'), place)
    await writeFile(path.join(directory, inSnapshot(name, 'tables/throttles.gz')), gzipSync('{"key":"k"}\n'))
    await expect(restoreBackup(contextOf(empty, 'empty'), place, undefined)).rejects.toThrow()
    expect(await empty.sql`select name from certificates`).toHaveLength(0)
  } finally {
    await empty.close()
  }
})

describe('an installation with a drop', () => {
  let source: TestDatabase
  let content: string
  let whole: BackupPlace
  beforeAll(async () => {
    source = await createTestDatabase()
    content = await store(contextOf(source, 'source'), 'content')
    await insertDrop(source, [content])
    await mkdir(path.join(folder, 'source', 'pages'), { recursive: true })
    await writeFile(path.join(folder, 'source', 'pages', 'terms.md'), '# Terms\n')
    whole = openBackupPlace(path.join(folder, 'whole'), folder)
    await takeBackup({ ...contextOf(source, 'source'), now: 1000 }, whole)
  })
  afterAll(() => source.close())

  async function restoredInto(name: string, use: (target: TestDatabase, context: BackupContext) => Promise<void>) {
    const target = await createTestDatabase()
    try {
      await use(target, contextOf(target, name))
    } finally {
      await target.close()
    }
  }

  test('a backup that fails leaves nothing of itself, and the ones before it', async () => {
    const elsewhere = createDirectoryBlobStore(path.join(folder, 'elsewhere'))
    const lacking = { ...contextOf(source, 'lacking'), now: 2000 }
    await expect(takeBackup(lacking, { ...whole, blobs: elsewhere })).rejects.toThrow(BlobMissing)
    expect(await readdir(path.join(folder, 'whole', 'snapshots'))).toEqual(await whole.snapshots())
    expect(await whole.snapshots()).toHaveLength(1)
  })

  test('content that a restore finds in the store counts as just written: collection leaves it alone', async () => {
    await restoredInto('intact', async (_, context) => {
      await store(context, 'content')
      await utimes(path.join(folder, 'intact-blobs', content.slice(0, 2), content), 0, 0)
      await restoreBackup(context, whole, undefined)
      expect(await context.blobs.discard(content, 0)).toBe(false)
      expect(await context.blobs.has(content)).toBe(true)
    })
  })

  test('a restore that cannot write beside the tables leaves the installation empty, and can be repeated', async () => {
    await restoredInto('blocked', async ({ sql }, context) => {
      const pages = path.join(context.dataDir, 'pages')
      await mkdir(context.dataDir)
      await writeFile(pages, 'in the way')
      await expect(restoreBackup(context, whole, undefined)).rejects.toThrow('EEXIST')
      expect(await sql`select from sites`).toHaveLength(0)
      await rm(pages)
      await restoreBackup(context, whole, undefined)
      expect(await sql`select from sites`).toHaveLength(1)
      expect(await readFile(path.join(pages, 'terms.md'), 'utf8')).toBe('# Terms\n')
    })
  })

  test('files that were sent ahead are not copied, and not taken from a backup that has them: their bytes are in none', async () => {
    const directory = path.join(folder, 'ahead')
    const place = openBackupPlace(directory, folder)
    const row = { id: 'up', org_id: 'org', name: 'a.txt', max_bytes: 9, hash: 'a'.repeat(64), size: 1 }
    await source.sql`insert into content_uploads ${source.sql({ ...row, created_at: new Date(0), expires_at: new Date(1) })}`
    const { name, facts } = await takeBackup(contextOf(source, 'source'), place)
    expect(facts.tables.map((table) => table.name)).not.toContain('content_uploads')
    const former = { ...facts, tables: [...facts.tables, { name: 'content_uploads', rows: 1 }] }
    await writeFile(path.join(directory, inSnapshot(name, 'backup.json')), JSON.stringify(former))
    const line = JSON.stringify({ ...row, created_at: new Date(0), expires_at: new Date(1) })
    await writeFile(path.join(directory, inSnapshot(name, 'tables/content_uploads.gz')), gzipSync(`${line}\n`))
    await restoredInto('ahead-target', async ({ sql }, context) => {
      await restoreBackup(context, place, undefined)
      expect(await sql`select from sites`).toHaveLength(1)
      expect(await sql`select from content_uploads`).toHaveLength(0)
    })
  })
})
