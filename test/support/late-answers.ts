/**
 * Which connection hears first is chance where a capability asks Postgres and Redis over several. With LATE_ANSWERS=<seed>
 * one answer in twenty is read up to 80 ms late, in the tests' processes and in those that they start, so that the rare
 * orders become common. Within a connection everything keeps its order.
 */
import net from 'node:net'
import { setTimeout } from 'node:timers'
import { createRandom } from './random.ts'

/** Which answers are late; undefined where none is. What tests draw themselves has a seed of its own (`depth.ts`). */
const LATE_ANSWERS = process.env['LATE_ANSWERS'] || undefined
export const HAS_LATE_ANSWERS = LATE_ANSWERS !== undefined

const CHANCE = 1 / 20
const MOST_MS = 80
/** What begins a conversation with Redis: an array of RESP. */
const RESP_ARRAY = '*'.charCodeAt(0)
/** The version in the message that begins one with Postgres, behind the length of the message. */
const POSTGRES_3 = 0x00_03_00_00
const POSTGRES_VERSION_AT = 4

const known = new WeakSet<net.Socket>()
let isBegun = false

/** Where answers are to be late, from now on in this process, however often it is said. */
export function answerLate(): void {
  if (!HAS_LATE_ANSWERS || isBegun) return
  isBegun = true
  const random = createRandom(Number(LATE_ANSWERS) + process.pid)
  const { connect } = net.Socket.prototype
  net.Socket.prototype.connect = function begin(this: net.Socket, ...args: Parameters<typeof connect>) {
    // It takes away whatever stood in the place of `write`.
    Reflect.apply(connect, this, args)
    if (known.has(this)) return this
    known.add(this)
    onceAsked(this, () => delay(this, () => (random.chance(CHANCE) ? random.next() * MOST_MS : 0)))
    return this
  } as typeof connect
}

/** By what is said first, and not by who says it: the drivers are parts of larger files where our programs are built. */
function onceAsked(socket: net.Socket, then: () => void): void {
  const { write } = socket
  socket.write = ((chunk: string | Uint8Array, ...rest: unknown[]) => {
    socket.write = write
    if (isToStore(Buffer.from(chunk as string))) then()
    return Reflect.apply(write, socket, [chunk, ...rest])
  }) as typeof write
}

function isToStore(first: Buffer): boolean {
  if (first[0] === RESP_ARRAY) return true
  return (
    first.length > POSTGRES_VERSION_AT + 4 &&
    first.readInt32BE(0) === first.length &&
    first.readInt32BE(POSTGRES_VERSION_AT) === POSTGRES_3
  )
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
