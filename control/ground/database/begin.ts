/**
 * BEGIN without a turn of its own. The driver waits for the answer to BEGIN before it lets a transaction's first statement
 * go; here that statement follows at once, in the same packet. Nothing else changes: the driver keeps the connection for
 * the transaction, and what is lost with the connection fails as before. Postgres refuses a BEGIN only together with the
 * connection, so that no statement runs outside of its transaction.
 */
import type { Sql, UnsafeQueryOptions } from 'postgres'

/** The driver's list of connections in one state; each connection knows the one that it is in. */
interface ConnectionList {
  push(connection: Connection): void
  remove(connection: Connection): void
}

interface Connection {
  queue: ConnectionList
}

/** How `begin` of the driver asks for BEGIN: it wants to hear which connection took it. */
interface BeginOptions extends UnsafeQueryOptions {
  onexecute?: (connection: Connection) => void
}

/** Makes `begin` of this pool go on as soon as a connection has taken BEGIN. The version of the driver is pinned. */
export function sendBeginAhead(pool: Sql): void {
  const send = pool.unsafe
  const sendAhead = (text: string, values?: [], options?: BeginOptions): unknown => {
    const { onexecute } = options ?? {}
    if (onexecute === undefined) return send(text, values, options)
    const taken = Promise.withResolvers<void>()
    const asking: BeginOptions = {
      ...options,
      onexecute(connection) {
        onexecute(connection)
        const reserved = connection.queue
        // The driver now calls it full until BEGIN is answered, and would hold the next statement back until then.
        queueMicrotask(() => {
          connection.queue.remove(connection)
          reserved.push(connection)
          connection.queue = reserved
          taken.resolve()
        })
      },
    }
    const query = send(text, values, asking)
    return {
      execute() {
        query.execute().catch(taken.reject)
        return taken.promise
      },
    }
  }
  Object.assign(pool, { unsafe: sendAhead })
}
