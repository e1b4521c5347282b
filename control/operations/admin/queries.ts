import { one, type Sql } from '../../ground/database/sql.ts'

export interface FoundAccount {
  readonly user_id: string
  readonly email: string
  /** The user's own organisation. */
  readonly org_id: string
}

export async function findAccount(sql: Sql, email: string): Promise<FoundAccount | undefined> {
  const [account] = await sql<FoundAccount[]>`
    select users.id as user_id, users.email, organisations.id as org_id
    from users join organisations on organisations.owner_id = users.id
    where lower(users.email) = lower(${email}) and organisations.personal and organisations.deleted_at is null`
  return account
}

export async function makeStaff(sql: Sql, userId: string): Promise<void> {
  await sql`update users set is_staff = true where id = ${userId}`
}

export interface DatabaseFacts {
  readonly version: string
  readonly now: Date
}

export async function databaseFacts(sql: Sql): Promise<DatabaseFacts> {
  return one(await sql<DatabaseFacts[]>`select current_setting('server_version') as version, clock_timestamp() as now`)
}

export async function appliedMigrations(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`select name from schema_migrations`
  return rows.map((row) => row.name)
}
