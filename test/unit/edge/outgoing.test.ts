/** Answers on their way out: whole while there is plenty of room, in pieces and in turn when readers dawdle. */
import { EventEmitter } from 'node:events'
import { PassThrough, Readable, Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { finished } from 'node:stream/promises'
import { setImmediate as turn } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
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

  function four() {
    const outgoing = createOutgoing()
    const lane = outgoing.lane(connection().socket)
    const visitors = [visitor(), visitor(), visitor(), visitor()] as const
    for (const { to } of visitors) lane.end(to, bytes(LARGE))
    return { outgoing, lane, visitors }
  }

  test('is all that it is handed at once, but for a piece of each other answer', async () => {
    const { outgoing, visitors } = four()
    expect(visitors.map(({ sizes }) => sizes)).toEqual([[LARGE], [LARGE], [ROOM - 2 * LARGE], [PIECE]])
    expect(outgoing.heldBytes()).toBe(ROOM + PIECE)
    for (const each of visitors) await each.takeAll()
    for (const each of visitors) {
      expect(each.taken().equals(bytes(LARGE))).toBe(true)
      expect(each.to.writableFinished).toBe(true)
    }
    expect(outgoing.heldBytes()).toBe(0)
  })

  test('is all that a body larger than it gets at once', async () => {
    const one = visitor()
    const body = bytes(2 * ROOM + 1)
    createOutgoing().lane(connection().socket).end(one.to, body)
    expect(one.sizes).toEqual([ROOM])
    await one.takeAll()
    expect(one.sizes).toEqual([ROOM, ROOM, 1])
    expect(one.taken().equals(body)).toBe(true)
    expect(one.to.writableFinished).toBe(true)
  })

  test('is not kept by answers that their visitor does not take', async () => {
    const { lane, visitors } = four()
    const later = visitor()
    lane.end(later.to, bytes(LARGE))
    await later.takeAll()
    expect(later.taken().equals(bytes(LARGE))).toBe(true)
    expect(visitors[3].sizes).toEqual([PIECE])
  })

  test('is free again when a visitor leaves', async () => {
    const { visitors } = four()
    visitors[0].to.destroy()
    await turn()
    await visitors[3].take()
    expect(visitors[3].sizes).toEqual([PIECE, LARGE - PIECE])
  })
})

describe('when too much waits', () => {
  const SMALL_PIECE = 1024

  test('a connection has four pieces under way, and a small one of each other answer', async () => {
    const outgoing = createOutgoing({ scarceFrom: 0 })
    const lane = outgoing.lane(connection().socket)
    const visitors = Array.from({ length: 50 }, visitor)
    for (const { to } of visitors) lane.end(to, bytes(2 * PIECE))
    expect(outgoing.heldBytes()).toBe(4 * PIECE + 46 * SMALL_PIECE)
    while (visitors.some(({ to }) => !to.writableFinished)) for (const one of visitors) await one.takeAll()
    for (const one of visitors) expect(one.taken().equals(bytes(2 * PIECE))).toBe(true)
    expect(outgoing.heldBytes()).toBe(0)
  })

  test('three hundred connections with a hundred unread answers each hold little', () => {
    const outgoing = createOutgoing()
    const body = bytes(20_000)
    for (let visit = 0; visit < 300; visit++) {
      const lane = outgoing.lane(connection().socket)
      for (let answer = 0; answer < 100; answer++) lane.end(visitor().to, body)
    }
    expect(outgoing.heldBytes()).toBeLessThan(16_000_000 + 300 * (4 * PIECE + 100 * SMALL_PIECE))
  })

  test('a reader who leaves gives back what they held', async () => {
    const outgoing = createOutgoing({ scarceFrom: 0 })
    const lane = outgoing.lane(connection().socket)
    const visitors = Array.from({ length: 5 }, visitor)
    for (const { to } of visitors) lane.end(to, bytes(2 * PIECE))
    const [first, , , , fifth] = visitors
    expect(fifth!.sizes).toEqual([SMALL_PIECE])
    first!.to.destroy()
    await turn()
    await fifth!.take()
    expect(fifth!.sizes).toEqual([SMALL_PIECE, PIECE])
    for (const each of visitors) each.to.destroy()
    await turn()
    expect(outgoing.heldBytes()).toBe(0)
  })

  test('what a connection held is given back when it ends, though no answer hears of it', () => {
    const outgoing = createOutgoing()
    const { socket, close } = connection()
    const lane = outgoing.lane(socket)
    const source = new Readable({ read() {} })
    lane.end(visitor().to, bytes(PIECE))
    lane.pump(source, visitor().to, 10)
    close()
    expect(outgoing.heldBytes()).toBe(0)
    expect(source.destroyed).toBe(true)
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

  test('whose source ends while a piece of it is still under way is whole', async () => {
    for (const scarceFrom of [0, 1_000_000]) {
      const source = new Readable({ read() {} })
      const one = visitor()
      createOutgoing({ scarceFrom }).lane(connection().socket).pump(source, one.to, undefined)
      source.push(bytes(5 * PIECE))
      source.push(null)
      await turns(5)
      expect(one.to.writableEnded).toBe(false)
      await one.takeAll()
      expect(one.taken().equals(bytes(5 * PIECE))).toBe(true)
      expect(one.to.writableFinished).toBe(true)
    }
  })

  test.each([
    ['is destroyed', (source: Readable) => void source.destroy()],
    ['fails', (source: Readable) => void source.destroy(new Error('disk'))],
  ])('whose source %s is never ended as if it were whole', async (_, stop) => {
    for (const isBefore of [true, false]) {
      const source = new Readable({ read() {} })
      source.on('error', () => {})
      const one = visitor()
      if (isBefore) stop(source)
      await turn()
      createOutgoing().lane(connection().socket).pump(source, one.to, undefined)
      if (!isBefore) stop(source)
      await turns(3)
      expect([one.to.errored instanceof Error, one.to.writableEnded]).toEqual([true, false])
    }
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

  // The checks come when the test says so, however busy the machine is.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
  afterEach(() => void vi.useRealTimers())

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

  /** More checks than anyone has who takes nothing, and fewer than one who is given time. */
  const ALL_CHECKS = 30
  const FEW_CHECKS = 8

  async function pass(checks: number, meanwhile: () => void = () => {}): Promise<void> {
    const timer = setInterval(meanwhile, 1)
    await vi.advanceTimersByTimeAsync(checks * CHECK_MS)
    clearInterval(timer)
  }

  async function expectGivenUp(started: Started, meanwhile?: () => void, checks = ALL_CHECKS): Promise<void> {
    await pass(checks, meanwhile)
    expect(started.given()).toBeGreaterThan(0)
  }

  async function expectKept(started: Started, meanwhile: () => void): Promise<void> {
    await pass(FEW_CHECKS, meanwhile)
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
    await expectGivenUp(crowded, undefined, FEW_CHECKS)
    expect(alone.given()).toBe(0)
    await expectGivenUp(alone)
  })

  test('has time again when the many have gone, however busy the others are', async () => {
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
