/**
 * Which connection hears first is chance where a capability asks Postgres and Redis over several. With LATE_ANSWERS=1 one
 * answer in twenty is read up to 80 ms late, in the tests' processes and in those that they start, so that the rare orders
 * become common. Within a connection everything keeps its order.
 */
import net from 'node:net'
import { setTimeout } from 'node:timers'
import { createRandom } from './random.ts'

export const HAS_LATE_ANSWERS = process.env['LATE_ANSWERS'] === '1'

const CHANCE = 1 / 20
const MOST_MS = 80
const CLIENTS = /\/node_modules\/(?:postgres|ioredis)\//
/** Between the call of `connect` and the client that it is for. */
const MOST_CALLS = 30

const delayed = new WeakSet<net.Socket>()
let isBegun = false

/** For this process, however often it is said. */
export function answerLate(seed: number): void {
  if (isBegun) return
  isBegun = true
  const random = createRandom(seed + process.pid)
  const { connect } = net.Socket.prototype
  net.Socket.prototype.connect = function begin(this: net.Socket, ...args: Parameters<typeof connect>) {
    if (!delayed.has(this) && isCalledByClient()) {
      delayed.add(this)
      delay(this, () => (random.chance(CHANCE) ? random.next() * MOST_MS : 0))
    }
    return Reflect.apply(connect, this, args)
  } as typeof connect
}

function isCalledByClient(): boolean {
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = MOST_CALLS
  const calls = new Error('where are we?').stack ?? ''
  Error.stackTraceLimit = before
  return CLIENTS.test(calls)
}

function delay(socket: net.Socket, nextMs: () => number): void {
  const push = socket.push.bind(socket)
  const arrived: unknown[] = []
  function deliverNext(): void {
    setTimeout(() => {
      push(arrived.shift())
      if (arrived.length > 0) deliverNext()
    }, nextMs())
  }
  socket.push = (chunk: unknown) => {
    arrived.push(chunk)
    if (arrived.length === 1) deliverNext()
    return true
  }
}
