/** Contract 3a: every Redis key that both planes touch. All share one hash tag, so that a MULTI works on a cluster. */
const PREFIX = '{dropway}:'

export const keys = {
  /** Hash: host → encoded route record. With `epoch` it is the snapshot. */
  routes: `${PREFIX}routes`,
  /** Hash: custom domain → JSON `{ wanted }`. Published by control; what the edges' issuers work through. */
  domains: `${PREFIX}domains`,
  /** Hash: name → sealed certificate bundle. */
  certificates: `${PREFIX}certificates`,
  /** String: identifies the life of this Redis data set. Absent after FLUSHALL; set by control once everything is republished. */
  epoch: `${PREFIX}epoch`,
  /** String: which life of Redis itself (its replication id) `epoch` was written into. Edges never look at it. */
  redisLife: `${PREFIX}history`,
  /** String: the history (contracts/history.ts) whose database alone may publish. Set before its snapshot is written. */
  writer: `${PREFIX}writer`,
  /** String `<revision> <host>`: the newest revision that was ever published. A database without it was set back. */
  newest: `${PREFIX}newest`,
  /** Set: hosts that an edge serves and the snapshot does not name. Control says what becomes of them. */
  unknown: `${PREFIX}unknown`,
  /** Stream: the lossless change log (contract 3b, stream.ts). */
  log: `${PREFIX}routes:log`,
  /** String with TTL per live edge: the log position that all of its workers serve. */
  edge: (edgeId: string) => `${PREFIX}edge:${edgeId}`,
  /** String with the same TTL: what else the edge says of itself (contracts/live-edges.ts). */
  edgeState: (edgeId: string) => `${PREFIX}edge-state:${edgeId}`,
  /** Channel: `<edge id> <position>`, when an edge has acknowledged a position. A hint to look at what edges say, no more. */
  acknowledged: `${PREFIX}acknowledged`,
  /** Set of edge ids that have registered; an id without a live `edge` key has gone. */
  edges: `${PREFIX}edges`,
  /** Hash: `<site_id>|<day>` → page views not yet folded into Postgres. */
  views: `${PREFIX}views`,
  /** Hash: who has a drop's review page open → their name and until when that is believed. */
  present: (siteId: string) => `${PREFIX}present:${siteId}`,
  /** Hash: `<viewer or guest link>|<second>` → pages that they opened, not yet folded into Postgres. */
  visits: `${PREFIX}visits`,
  /** Lock of the one edge that orders a certificate for a name, with TTL. */
  orderLock: (name: string) => `${PREFIX}acme:lock:${name}`,
  /** The sealed ACME account key. */
  acmeAccount: `${PREFIX}acme:account`,
  /** Hash: name → JSON retry state (attempts, next attempt, last error). */
  acmeRetry: `${PREFIX}acme:retry`,
  /** Sorted sets: orders at the CA by their time, of all and of one organisation. */
  acmeOrders: `${PREFIX}acme:orders`,
  acmeOrdersOf: (organisation: string) => `${PREFIX}acme:orders:${organisation}`,
  /** Sorted set: what planes say of the settings that all must share (plane-settings.ts), by the time they last said it. */
  settings: `${PREFIX}settings`,
  rateLimit: (name: string) => `${PREFIX}limit:${name}`,
}

/** An edge that has not renewed its key for this long no longer counts when control waits for acknowledgements. */
export const EDGE_TTL_MS = 5000
export const EDGE_HEARTBEAT_MS = 1000
/** Entries kept in the log; an edge that is further behind reconciles from the snapshot. */
export const LOG_LENGTH = 100_000
