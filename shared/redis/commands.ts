/**
 * What the publish path asks of Redis, on either side. ioredis implements it in production, and the simulation
 * (test/simulation/) with faults of every kind: nothing else of Redis may be used there.
 */
export type StreamEntry = [id: string, fields: string[]]

export interface RedisCommands {
  get(key: string): Promise<string | null>
  mget(keys: string[]): Promise<(string | null)[]>
  set(key: string, value: string): Promise<unknown>
  del(key: string): Promise<unknown>
  smembers(key: string): Promise<string[]>
  sadd(key: string, ...members: string[]): Promise<unknown>
  srem(key: string, ...members: string[]): Promise<unknown>
  hget(key: string, field: string): Promise<string | null>
  hscan(key: string, cursor: string, count: 'COUNT', number: number): Promise<[cursor: string, flat: string[]]>
  xrange(key: string, from: string, to: string, count: 'COUNT', number: number): Promise<StreamEntry[]>
  xrevrange(key: string, from: string, to: string, count: 'COUNT', number: number): Promise<StreamEntry[]>
  /** EXEC of this connection's next MULTI does nothing when one of the keys has changed by then. */
  watch(...keys: string[]): Promise<unknown>
  unwatch(): Promise<unknown>
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>
  /** Tells those who listen right now; it reaches them or not. */
  publish(channel: string, message: string): Promise<unknown>
  multi(): RedisTransaction
}

/** All of it happens at one moment, or nothing. */
export interface RedisTransaction {
  get(key: string): RedisTransaction
  set(key: string, value: string): RedisTransaction
  set(key: string, value: string, unit: 'PX', ms: number): RedisTransaction
  del(key: string): RedisTransaction
  hset(key: string, ...fieldsAndValues: string[]): RedisTransaction
  hsetnx(key: string, field: string, value: string): RedisTransaction
  sadd(key: string, ...members: string[]): RedisTransaction
  srem(key: string, ...members: string[]): RedisTransaction
  xadd(key: string, ...idAndFields: (string | number)[]): RedisTransaction
  /** Null when a watched key had changed. A command can fail alone: its pair holds the error. */
  exec(): Promise<[error: Error | null, result: unknown][] | null>
}

/** A connection that says when it is lost: what was watched on it is watched no more. */
export interface WatchingConnection extends RedisCommands {
  readonly status: string
  on(event: 'close', listener: () => void): unknown
}

/** A connection of the edge's follower, which opens and gives up its own. */
export interface RedisConnection extends RedisCommands {
  readonly status: string
  connect(): Promise<void>
  disconnect(): void
  once(event: 'ready' | 'close', listener: () => void): unknown
  xread(
    count: 'COUNT',
    number: number,
    block: 'BLOCK',
    ms: number,
    streams: 'STREAMS',
    key: string,
    position: string,
  ): Promise<[key: string, entries: StreamEntry[]][] | null>
}
