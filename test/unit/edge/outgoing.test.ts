/** Answers on their way out: whole while there is plenty of room, in pieces and in turn when readers dawdle. */
import { EventEmitter } from 'node:events'
import { PassThrough, Readable, Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { finished } from 'node:stream/promises'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { lendChunk } from '../../../shared/blobs/lent-chunks.ts'
import { createOutgoing } from '../../../edge/accept/outgoing/outgoing.ts'

const PIECE = 8192
/** No two pieces of it are alike. */
const PATTERN = Buffer.from(Array.from({ length: 251 }, (_, index) => index))
const bytes = (size: number): Buffer => Buffer.alloc(size, PATTERN)

async function turns(count: number): Promise<void> {
  for (let done = 0; done < count; done++) await turn()
}

/** A visitor who takes what is written when `take` is called, and says which sizes came. */
function visitor(): {
  to: Writable
  sizes: number[]
  taken(): Buffer
  /** And waits for so many turns. */
  take(then?: number): Promise<void>
  takeAll(): Promise<void>
} {
  const chunks: Buffer[] = []
  const pending: (() => void)[] = []
  const to = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk)
      pending.push(() => done())
    },
  })
  to.on('error', () => {})
  const take = async (then = 3): Promise<void> => {
    pending.shift()?.()
    await turns(then)
  }
  return {
    to,
    taken: () => Buffer.concat(chunks),
    take,
    async takeAll() {
      while (pending.length > 0) await take()
    },
    get sizes() {
      return chunks.map(({ length }) => length)
    },
  }
}

const INODE = '4711'

/** As much of a connection as is asked for: what the kernel has taken of it, what of that is acknowledged, its end. */
function connection(): {
  socket: TLSSocket
  take(bytes: number): void
  acknowledge(bytes: number): void
  /** What it has not taken. */
  leave(bytes: number): void
  queued(): number
  close(): void
} {
  const handle = { bytesWritten: 0, writeQueueSize: 0, fd: 1 }
  const raw = Object.assign(new EventEmitter(), { _handle: handle })
  let queued = 0
  return {
    socket: { _parent: raw } as unknown as TLSSocket,
    take(taken) {
      handle.bytesWritten += taken
      queued += taken
    },
    leave: (left) => void (handle.writeQueueSize = left),
    acknowledge: (bytes) => void (queued -= Math.min(bytes, queued)),
    queued: () => queued,
    close: () => void raw.emit('close'),
  }
}

describe('a body', () => {
  test('leaves in one write while there is plenty of room, and is counted until the visitor has it', async () => {
    const outgoing = createOutgoing({ scarceFrom: 1_000_000 })
    const body = bytes(500_000)
    const one = visitor()
    outgoing.lane(connection().socket).end(one.to, body)
    expect(one.sizes).toEqual([500_000])
    expect(outgoing.heldBytes()).toBe(500_000)
    await one.takeAll()
    expect(one.to.writableFinished).toBe(true)
    expect(outgoing.heldBytes()).toBe(0)
  })

  test('leaves in pieces when too much waits, whole and in order', async () => {
    const outgoing = createOutgoing({ scarceFrom: 1 })
    outgoing.lane(connection().socket).end(visitor().to, bytes(1))
    const body = bytes(3 * PIECE + 100)
    const one = visitor()
    outgoing.lane(connection().socket).end(one.to, body)
    expect(outgoing.heldBytes()).toBe(1 + PIECE)
    await one.takeAll()
    expect(one.sizes).toEqual([PIECE, PIECE, PIECE, 100])
    expect(one.taken().equals(body)).toBe(true)
    expect(one.to.writableFinished).toBe(true)
    expect(outgoing.heldBytes()).toBe(1)
  })

  test.each([PIECE - 1, PIECE, PIECE + 1, 2 * PIECE])('of %i bytes arrives whole when too much waits', async (size) => {
    const outgoing = createOutgoing({ scarceFrom: 0 })
    const one = visitor()
    outgoing.lane(connection().socket).end(one.to, bytes(size))
    await one.takeAll()
    expect(one.taken().equals(bytes(size))).toBe(true)
    expect(one.to.writableFinished).toBe(true)
  })
})

describe('the room of one connection', () => {
  const ROOM = 524_288
  const LARGE = 250_000

  /** Four large bodies, and a connection of which the kernel has yet to take something, or not. */
  function four({ left }: { left: number }) {
    const { socket, leave } = connection()
    leave(left)
    const lane = createOutgoing().lane(socket)
    const visitors = [visitor(), visitor(), visitor(), visitor()] as const
    for (const { to } of visitors) lane.end(to, bytes(LARGE))
    return { lane, visitors, leave }
  }

  test('is all that it is handed at once; the others follow, whole and in order', async () => {
    const { visitors } = four({ left: 1 })
    await turns(5)
    const [first, second, third, fourth] = visitors
    expect(visitors.map(({ sizes }) => sizes)).toEqual([[LARGE], [LARGE], [], []])
    await first.take()
    expect([third.sizes, fourth.sizes]).toEqual([[LARGE], []])
    for (const each of [second, third, fourth]) await each.takeAll()
    for (const each of visitors) {
      expect(each.taken().equals(bytes(LARGE))).toBe(true)
      expect(each.to.writableFinished).toBe(true)
    }
  })

  test('is all that a body larger than it gets at once', async () => {
    const { socket, leave } = connection()
    leave(1)
    const one = visitor()
    const body = bytes(2 * ROOM + 1)
    createOutgoing().lane(socket).end(one.to, body)
    await turns(5)
    expect(one.sizes).toEqual([ROOM])
    await one.takeAll()
    expect(one.sizes).toEqual([ROOM, ROOM, 1])
    expect(one.taken().equals(body)).toBe(true)
    expect(one.to.writableFinished).toBe(true)
  })

  test('is not divided as long as answers that the kernel has taken come to their end', async () => {
    const { visitors } = four({ left: 0 })
    for (const each of visitors) await each.take(2)
    expect(visitors.map(({ sizes }) => sizes)).toEqual(visitors.map(() => [LARGE]))
  })

  test('is not kept by answers whose visitor has closed their windows', async () => {
    const { visitors, lane } = four({ left: 0 })
    await turns(5)
    const [, , third, another] = visitors
    expect([third.sizes, another.sizes]).toEqual([[ROOM - 2 * LARGE], [PIECE]])
    await third.takeAll()
    expect(third.taken().equals(bytes(LARGE))).toBe(true)
    expect(third.to.writableFinished).toBe(true)
    const fourth = visitor()
    lane.end(fourth.to, bytes(PIECE))
    expect(fourth.sizes).toEqual([PIECE])
  })

  test('never holds up what is as small as a piece', () => {
    const { lane } = four({ left: 1 })
    const small = visitor()
    lane.end(small.to, bytes(PIECE))
    expect(small.sizes).toEqual([PIECE])
    const larger = visitor()
    lane.end(larger.to, bytes(PIECE + 1))
    expect(larger.sizes).toEqual([])
  })

  test('is free again when a visitor leaves', async () => {
    const { visitors } = four({ left: 1 })
    visitors[0].to.destroy()
    await turns(5)
    expect(visitors[2].sizes).toEqual([LARGE])
    expect(visitors[3].sizes).toEqual([])
  })

  test('half of it is enough for what is larger, however many small ones are under way', async () => {
    const { socket, leave } = connection()
    leave(1)
    const lane = createOutgoing().lane(socket)
    const first = visitor()
    lane.end(first.to, bytes(LARGE))
    for (let small = 0; small < 3; small++) lane.end(visitor().to, bytes(PIECE))
    const one = visitor()
    lane.end(one.to, bytes(2 * ROOM))
    await turns(5)
    expect(one.sizes).toEqual([])
    await first.take()
    expect(one.sizes).toEqual([ROOM - 3 * PIECE])
  })

  test('is looked at again when something has left', async () => {
    const { socket, leave } = connection()
    leave(1)
    const lane = createOutgoing().lane(socket)
    lane.end(visitor().to, bytes(LARGE))
    lane.end(visitor().to, bytes(LARGE))
    const small = visitor()
    lane.end(small.to, bytes(PIECE))
    const one = visitor()
    lane.end(one.to, bytes(LARGE))
    await turns(5)
    expect(one.sizes).toEqual([])
    leave(0)
    await small.take(5)
    expect(one.sizes[0]).toBeLessThan(LARGE)
  })

  test('is looked at again when the kernel has taken what was queued, though nothing has come to its end', async () => {
    const { socket, leave } = connection()
    leave(1)
    const lane = createOutgoing({ checkMs: 3_600_000 }).lane(socket)
    lane.end(visitor().to, bytes(ROOM))
    const one = visitor()
    lane.end(one.to, bytes(LARGE))
    await turns(5)
    leave(0)
    await turns(5)
    expect(one.sizes).toEqual([])
    await vi.waitFor(() => expect(one.sizes).toEqual([PIECE]))
  })

  test('is looked at again with every check', async () => {
    const { socket, leave } = connection()
    leave(1)
    const lane = createOutgoing({ checkMs: 40 }).lane(socket)
    lane.end(visitor().to, bytes(ROOM))
    const one = visitor()
    lane.end(one.to, bytes(LARGE))
    await sleep(20)
    expect(one.sizes).toEqual([])
    leave(0)
    await vi.waitFor(() => expect(one.sizes).toEqual([PIECE]))
  })
})

describe('when too much waits', () => {
  test('a connection has four pieces under way, whatever it asked for', async () => {
    const outgoing = createOutgoing({ scarceFrom: 0 })
    const lane = outgoing.lane(connection().socket)
    const visitors = Array.from({ length: 50 }, visitor)
    for (const { to } of visitors) lane.end(to, bytes(2 * PIECE))
    expect(outgoing.heldBytes()).toBe(4 * PIECE)
    expect(visitors.filter(({ sizes }) => sizes.length > 0)).toHaveLength(4)
    while (visitors.some(({ to }) => !to.writableFinished)) for (const one of visitors) await one.takeAll()
    for (const one of visitors) expect(one.taken().equals(bytes(2 * PIECE))).toBe(true)
    expect(outgoing.heldBytes()).toBe(0)
  })

  test('a reader who leaves gives back what they held, and the next gets the turn', async () => {
    const outgoing = createOutgoing({ scarceFrom: 0 })
    const lane = outgoing.lane(connection().socket)
    const visitors = Array.from({ length: 6 }, visitor)
    for (const { to } of visitors) lane.end(to, bytes(PIECE))
    const [first, , , , fifth, sixth] = visitors
    expect(fifth!.sizes).toEqual([])
    fifth!.to.destroy()
    first!.to.destroy()
    await turn()
    expect(sixth!.sizes).toEqual([PIECE])
    for (const each of visitors) await each.takeAll()
    expect(outgoing.heldBytes()).toBe(0)
  })

  test('an answer that its reader does not take leaves the others of the connection their way', async () => {
    const outgoing = createOutgoing({ scarceFrom: 0 })
    const lane = outgoing.lane(connection().socket)
    lane.end(visitor().to, bytes(2 * PIECE))
    const other = visitor()
    lane.end(other.to, bytes(3 * PIECE))
    await other.takeAll()
    expect(other.to.writableFinished).toBe(true)
  })

  test('another connection is not held up', () => {
    const outgoing = createOutgoing({ scarceFrom: 0 })
    outgoing.lane(connection().socket).end(visitor().to, bytes(PIECE))
    const other = visitor()
    outgoing.lane(connection().socket).end(other.to, bytes(PIECE))
    expect(other.sizes).toEqual([PIECE])
  })
})

describe('a stream', () => {
  const sourceOf = (count: number): { source: Readable; read: () => number } => {
    let read = 0
    const source = new Readable({
      highWaterMark: 0,
      read() {
        this.push(read === count ? null : bytes(1000 + read))
        if (read < count) read += 1
      },
    })
    return { source, read: () => read }
  }

  test.each([0, 1_000_000])('is read at the pace of its reader (scarce from %i)', async (scarceFrom) => {
    const outgoing = createOutgoing({ scarceFrom })
    const { source, read } = sourceOf(5)
    const one = visitor()
    outgoing.lane(connection().socket).pump(source, one.to, 5010)
    await turns(10)
    expect(one.sizes).toEqual([1000])
    expect(read()).toBeLessThanOrEqual(2)
    expect(outgoing.heldBytes()).toBe(1000)
    await one.takeAll()
    expect(one.taken().equals(Buffer.concat([0, 1, 2, 3, 4].map((index) => bytes(1000 + index))))).toBe(true)
    expect(one.to.writableFinished).toBe(true)
    expect(outgoing.heldBytes()).toBe(0)
  })

  test('gives the memory of a chunk back when all of it has left, and not before', async () => {
    const outgoing = createOutgoing({ scarceFrom: 0 })
    const bytesOfChunk = 3 * PIECE - 1
    const chunk = lendChunk(bytesOfChunk)
    const one = visitor()
    outgoing.lane(connection().socket).pump(Readable.from([chunk, bytes(1)]), one.to, bytesOfChunk + 1)
    await turn()
    for (let piece = 0; piece < 3; piece++) {
      expect(lendChunk(bytesOfChunk).buffer).not.toBe(chunk.buffer)
      await one.take()
    }
    expect(lendChunk(bytesOfChunk).buffer).toBe(chunk.buffer)
  })

  test('that fails ends the answer with an error, not as if it were whole', async () => {
    const source = Readable.from(
      (async function* () {
        yield bytes(10)
        throw new Error('disk')
      })(),
    )
    const to = new PassThrough()
    const received = buffer(to)
    createOutgoing().lane(connection().socket).pump(source, to, 20)
    await expect(received).rejects.toThrow('disk')
  })

  test.each([
    ['longer', 15],
    ['shorter', 25],
  ])('that is %s than announced is not sent as if it were right', async (_, length) => {
    const to = new PassThrough()
    const received: Buffer[] = []
    to.on('data', (chunk: Buffer) => received.push(chunk))
    createOutgoing()
      .lane(connection().socket)
      .pump(Readable.from([bytes(10), bytes(10)]), to, length)
    await expect(finished(to)).rejects.toThrow('the answer is too')
    expect(Buffer.concat(received).length).toBeLessThanOrEqual(length)
  })

  test('is given up when its reader leaves', async () => {
    const outgoing = createOutgoing({ scarceFrom: 0 })
    const { source } = sourceOf(5)
    const one = visitor()
    outgoing.lane(connection().socket).pump(source, one.to, 5010)
    await turn()
    one.to.destroy()
    await turn()
    expect(source.destroyed).toBe(true)
    expect(outgoing.heldBytes()).toBe(0)
  })
})

describe('a connection', () => {
  const CHECK_MS = 40

  type Started = ReturnType<typeof start>

  /** `crowd`: others of the worker, who take nothing. */
  function start({ scarceFrom = 1_000_000, isLinux = true, crowd = 0 } = {}) {
    const { socket, queued, ...rest } = connection()
    const sendQueues = {
      inodeOf: () => (isLinux ? INODE : undefined),
      read: async () => (isLinux ? new Map([[INODE, queued()]]) : undefined),
    }
    const outgoing = createOutgoing({ checkMs: CHECK_MS, scarceFrom, sendQueues })
    for (let one = 0; one < crowd; one++) outgoing.lane(connection().socket).end(visitor().to, bytes(1))
    const lane = outgoing.lane(socket)
    let given = 0
    lane.whenStalled(() => (given += 1))
    return { lane, given: () => given, ...rest }
  }

  async function expectGivenUp(started: Started, meanwhile: () => void = () => {}): Promise<void> {
    const timer = setInterval(meanwhile, 5)
    await vi.waitFor(() => expect(started.given()).toBeGreaterThan(0), { timeout: 3000 })
    clearInterval(timer)
  }

  async function expectKept(started: Started, meanwhile: () => void): Promise<void> {
    const timer = setInterval(meanwhile, 1)
    await sleep(8 * CHECK_MS)
    clearInterval(timer)
    expect(started.given()).toBe(0)
  }

  test('is given up when its visitor takes nothing of an answer', async () => {
    const started = start()
    started.lane.end(visitor().to, bytes(100_000))
    await expectGivenUp(started)
  })

  test('is given up when its visitor takes a byte now and then', async () => {
    const started = start()
    started.lane.end(visitor().to, bytes(100_000))
    await expectGivenUp(started, () => started.take(1))
  })

  test('is given up when what the kernel took is not acknowledged', async () => {
    const started = start()
    started.lane.end(visitor().to, bytes(100_000))
    started.take(4_000_000)
    await expectGivenUp(started, () => started.acknowledge(1))
  })

  test('is kept while its visitor acknowledges what the kernel took long ago', async () => {
    const started = start()
    started.lane.end(visitor().to, bytes(100_000))
    started.take(4_000_000)
    await expectKept(started, () => started.acknowledge(500))
  })

  test('that takes little for what it holds is given up when room is scarce, not before', async () => {
    const plenty = start({ scarceFrom: 50_000_000 })
    plenty.lane.hold(16_000_000)
    plenty.take(50_000_000)
    await expectKept(plenty, () => plenty.acknowledge(500))
    const scarce = start({ scarceFrom: 16_000_000 })
    scarce.lane.hold(16_000_000)
    scarce.take(50_000_000)
    await expectGivenUp(scarce, () => scarce.acknowledge(500))
  })

  test('is given time to pause, unless it is one of many', async () => {
    const alone = start()
    alone.lane.end(visitor().to, bytes(100_000))
    const crowded = start({ crowd: 50 })
    crowded.lane.end(visitor().to, bytes(100_000))
    await expectGivenUp(crowded)
    expect(alone.given()).toBe(0)
    await expectGivenUp(alone)
  })

  test('has time again when the many have gone, however busy the others are', async () => {
    // A busy machine would let those who are at work stand still too.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const sendQueues = { inodeOf: () => INODE, read: async () => new Map<string, number>() }
    const outgoing = createOutgoing({ checkMs: CHECK_MS, sendQueues })
    const still = Array.from({ length: 40 }, connection)
    for (const { socket } of still) outgoing.lane(socket).end(visitor().to, bytes(1))
    const busy = Array.from({ length: 40 }, connection)
    for (const { socket } of busy) outgoing.lane(socket).end(visitor().to, bytes(1))
    const working = setInterval(() => busy.forEach(({ take }) => take(5000)), 1)
    await vi.advanceTimersByTimeAsync(4 * CHECK_MS)
    for (const { close } of still) close()
    await vi.advanceTimersByTimeAsync(10 * CHECK_MS)
    const { socket } = connection()
    const lane = outgoing.lane(socket)
    let given = 0
    lane.whenStalled(() => (given += 1))
    lane.end(visitor().to, bytes(1))
    await vi.advanceTimersByTimeAsync(8 * CHECK_MS)
    clearInterval(working)
    expect(given).toBe(0)
  })

  test('whose acknowledgements no one tells of is given time too', async () => {
    const started = start({ isLinux: false, crowd: 50 })
    started.lane.end(visitor().to, bytes(100_000))
    await expectKept(started, () => {})
    await expectGivenUp(started)
  })

  test.each<[string, (started: Started) => void, (started: Started) => void]>([
    [
      'its visitor takes a little all the time',
      ({ lane }) => lane.end(visitor().to, bytes(9)),
      ({ take, acknowledge }) => {
        take(500)
        acknowledge(500)
      },
    ],
    ['nothing is under way', () => {}, () => {}],
    [
      'one small answer follows the other',
      () => {},
      ({ lane }) => {
        const one = visitor()
        lane.end(one.to, bytes(9))
        void one.takeAll()
      },
    ],
    [
      'it has ended',
      ({ lane, close }) => {
        lane.end(visitor().to, bytes(9))
        close()
      },
      () => {},
    ],
  ])('is kept when %s', async (_, before, meanwhile) => {
    for (const scarceFrom of [0, 1_000_000]) {
      const started = start({ scarceFrom })
      before(started)
      await expectKept(started, () => meanwhile(started))
    }
  })
})
