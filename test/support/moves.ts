/**
 * Watches the moves of drops (expired, removed, paused) where they happen: a trigger notes each one with the control
 * that made it, and can hold one control in the middle of a move for as long as the test likes.
 */
import { once } from 'node:events'
import net from 'node:net'
import path from 'node:path'
import { openDatabase } from '../../control/ground/database/sql.ts'

export type MoveKind = 'expired' | 'removed' | 'paused'

export interface Move {
  readonly control: string
  readonly kind: MoveKind
  readonly site_id: string
}

/** Makes a round of moves last long enough for two controls to meet in it. */
const MOVE_SECONDS = 0.02
/** Advisory lock that a held control waits for; any number that nothing else uses. */
const HOLD = 774_411
const COLUMNS: readonly (readonly [MoveKind, string])[] = [
  ['expired', 'expired_at'],
  ['removed', 'deleted_at'],
  ['paused', 'paused_at'],
]

/** The columns are named in the trigger's events: marking a drop again fires it too, and would be seen. */
const SCHEMA = `
  create table moves (id bigint generated always as identity, control text, kind text, site_id text);
  create table held_moves (control text, kind text, after_moves integer);
  create function note_move() returns trigger language plpgsql as $$
    declare me text := current_setting('application_name'); mine integer;
    begin
      if me not like 'control-%' then return null; end if;
      perform pg_sleep(${MOVE_SECONDS});
      insert into moves (control, kind, site_id) values (me, tg_argv[0], new.id);
      select count(*) into mine from moves where control = me and kind = tg_argv[0];
      if exists (select 1 from held_moves where control = me and kind = tg_argv[0] and mine > after_moves) then
        perform pg_advisory_lock_shared(${HOLD});
      end if;
      return null;
    end $$;
  ${COLUMNS.map(
    ([kind, column]) => `
      create trigger note_${kind} after update of ${column} on sites
      for each row when (new.${column} is not null) execute function note_move('${kind}');`,
  ).join('')}`

export type MoveWatch = Awaited<ReturnType<typeof watchMoves>>

export async function watchMoves(socketDirectory: string) {
  const sql = openDatabase({ url: socketDirectory, maxConnections: 4 })
  await sql.unsafe(SCHEMA)
  const holder = await sql.reserve()

  return {
    sql,
    moves: (): Promise<Move[]> => sql<Move[]>`select control, kind, site_id from moves order by id`,
    forget: async () => void (await sql`truncate moves`),
    /** The control stops inside its transaction at the move after that many of its own. */
    async hold(control: string, kind: MoveKind, afterMoves: number): Promise<void> {
      await holder`select pg_advisory_lock(${HOLD})`
      await sql`insert into held_moves values (${control}, ${kind}, ${afterMoves})`
    },
    /** Is it there, in the middle? */
    async isHeld(control: string): Promise<boolean> {
      const rows = await sql`
        select 1 from pg_locks l join pg_stat_activity a using (pid)
        where a.application_name = ${control} and l.locktype = 'advisory' and not l.granted`
      return rows.length > 0
    },
    /** Is it in a transaction, or asking something? */
    async isBusy(control: string): Promise<boolean> {
      const rows = await sql`select 1 from pg_stat_activity where application_name = ${control} and state <> 'idle'`
      return rows.length > 0
    },
    async release(): Promise<void> {
      await sql`delete from held_moves`
      await holder`select pg_advisory_unlock(${HOLD})`
    },
    async close(): Promise<void> {
      holder.release()
      await sql.end({ timeout: 2 })
    },
  }
}

/** The embedded Postgres listens on a unix socket, where a client cannot give itself a name; here it can. */
export async function startPostgresPort(socketDirectory: string) {
  const sockets = new Set<net.Socket>()
  const server = net.createServer((client) => {
    const upstream = net.connect(path.join(socketDirectory, '.s.PGSQL.5432'))
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
    client.pipe(upstream).pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  return {
    urlFor: (control: string) => `postgres://postgres@127.0.0.1:${port}/dropway?application_name=${control}`,
    async stop(): Promise<void> {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
