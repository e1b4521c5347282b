/** One contract, every store: a directory, S3, and S3 with copies in front of it. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { BlobMissing, type BlobStore } from '../../shared/blobs/blob-store.ts'
import { createCachedBlobStore } from '../../shared/blobs/cached-store.ts'
import { createDirectoryBlobStore } from '../../shared/blobs/directory-store.ts'
import { parseS3Url } from '../../shared/blobs/location.ts'
import { directCalls, offThreadCalls, type FileCalls, type OpenFile } from '../../shared/blobs/file-calls.ts'
import { openBlobStore } from '../../shared/blobs/open.ts'
import { createS3BlobStore } from '../../shared/blobs/s3-store.ts'
import { collect } from '../support/publishing.ts'
import { startTestS3, type TestS3 } from '../support/s3.ts'

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const ABSENT = 'a'.repeat(64)

let root: string
let server: TestS3
let s3Url: string

beforeAll(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'dropway-blobs-'))
  server = await startTestS3(path.join(root, 's3'))
  s3Url = server.url({ prefix: '/site-blobs', cache: path.join(root, 'cache') })
})
afterAll(async () => {
  await server.close()
  await rm(root, { recursive: true, force: true })
})

const stores: Record<string, () => BlobStore> = {
  'a directory': () => openBlobStore({ url: `file:${path.join(root, 'directory')}` }),
  'a directory, from a thread of its own': () =>
    openBlobStore({ url: `file:${path.join(root, 'thread')}` }, { files: directCalls }),
  S3: () => createS3BlobStore(parseS3Url(s3Url).settings, path.join(root, 'drafts')),
  'S3 behind a cache': () => openBlobStore({ url: s3Url }),
}

describe.each(Object.entries(stores))('%s', (_, open) => {
  let store: BlobStore
  beforeEach(() => {
    store = open()
  })

  test('bytes come back under their hash', async () => {
    const bytes = randomBytes(100_000)
    const stored = await store.put(bytes)
    expect(stored).toMatchObject({ hash: sha256(bytes), size: bytes.length })
    expect((await store.read(stored.hash)).equals(bytes)).toBe(true)
    expect(await store.has(stored.hash)).toBe(true)
  })

  test('the empty blob is a blob', async () => {
    const { hash } = await store.put(new Uint8Array())
    expect(await store.read(hash)).toHaveLength(0)
    expect(await collect(store.stream(hash))).toEqual([])
  })

  test('storing twice stores once, and only the first is new', async () => {
    const bytes = randomBytes(50)
    const first = await store.put(bytes)
    const second = await store.put(bytes)
    expect(second).toEqual({ hash: first.hash, size: first.size })
    const found = await collect(store.list())
    expect(found.filter((blob) => blob.hash === first.hash)).toHaveLength(1)
  })

  test('the same bytes from twenty writers at once', async () => {
    const bytes = randomBytes(10_000)
    const stored = await Promise.all(Array.from({ length: 20 }, () => store.put(bytes)))
    expect(new Set(stored.map((blob) => blob.hash))).toEqual(new Set([sha256(bytes)]))
    expect((await store.read(sha256(bytes))).equals(bytes)).toBe(true)
  })

  test('of two writers of the same bytes, none takes away what the other has stored', async () => {
    const bytes = randomBytes(1000)
    const writers = [await store.writer(), await store.writer()]
    for (const writer of writers) await writer.write(bytes)
    for (const { hash, modifiedAt } of await Promise.all(writers.map((writer) => writer.finish())))
      if (modifiedAt !== undefined) expect(await store.discard(hash, modifiedAt)).toBe(false)
    expect(await store.keep(sha256(bytes))).toEqual({ hash: sha256(bytes), size: 1000 })
  })

  test('a writer takes chunks', async () => {
    const bytes = randomBytes(300_000)
    const writer = await store.writer()
    for (let at = 0; at < bytes.length; at += 7000) await writer.write(bytes.subarray(at, at + 7000))
    const { hash, size } = await writer.finish()
    expect({ hash, size }).toEqual({ hash: sha256(bytes), size: bytes.length })
    expect((await store.read(hash)).equals(bytes)).toBe(true)
  })

  test('an aborted writer leaves nothing, and may be aborted twice', async () => {
    const bytes = randomBytes(1000)
    const writer = await store.writer()
    await writer.write(bytes)
    await writer.abort()
    await writer.abort()
    expect(await store.has(sha256(bytes))).toBe(false)
  })

  test('streams whole blobs and ranges, both ends inclusive', async () => {
    const bytes = randomBytes(200_000)
    const { hash } = await store.put(bytes)
    expect(Buffer.concat(await collect(store.stream(hash))).equals(bytes)).toBe(true)
    const middle = Buffer.concat(await collect(store.stream(hash, { start: 1000, end: 1999 })))
    expect(middle.equals(bytes.subarray(1000, 2000))).toBe(true)
  })

  test('a missing blob is a BlobMissing, however it is asked for', async () => {
    await expect(store.read(ABSENT)).rejects.toBeInstanceOf(BlobMissing)
    await expect(collect(store.stream(ABSENT))).rejects.toBeInstanceOf(BlobMissing)
    expect(await store.has(ABSENT)).toBe(false)
    expect(await store.keep(ABSENT)).toBeUndefined()
    expect(await store.discard(ABSENT, 0)).toBe(false)
    await store.remove(ABSENT)
  })

  test('a name that is no hash never becomes a path', async () => {
    for (const name of ['../../etc/passwd', '', 'A'.repeat(64), `${ABSENT}/`]) {
      await expect(async () => store.read(name)).rejects.toThrow('not a blob hash')
    }
  })

  test('removes, and lists what is there with size and age', async () => {
    const { hash } = await store.put(randomBytes(123))
    const listed = (await collect(store.list())).find((blob) => blob.hash === hash)
    expect(listed).toMatchObject({ size: 123 })
    expect(Math.abs(Date.now() - listed!.modifiedAt)).toBeLessThan(600_000)
    await store.remove(hash)
    expect(await store.has(hash)).toBe(false)
  })

  test('discards what is as old as it was listed', async () => {
    const { hash } = await store.put(randomBytes(10))
    const listed = (await collect(store.list())).find((blob) => blob.hash === hash)!
    expect(await store.discard(hash, listed.modifiedAt - 5000)).toBe(false)
    expect(await store.has(hash)).toBe(true)
    expect(await store.discard(hash, listed.modifiedAt)).toBe(true)
    expect(await store.has(hash)).toBe(false)
  })
})

describe('a directory', () => {
  test('does not discard a blob that someone kept or stored again', async () => {
    const store = createDirectoryBlobStore(path.join(root, 'kept'))
    const kept = await store.put(randomBytes(10))
    await store.keep(kept.hash)
    expect(await store.discard(kept.hash, kept.modifiedAt!)).toBe(false)
    const bytes = randomBytes(10)
    const again = await store.put(bytes)
    await store.put(bytes)
    expect(await store.discard(again.hash, again.modifiedAt!)).toBe(false)
    expect(await store.has(again.hash)).toBe(true)
    expect(await readdir(path.join(root, 'kept', 'tmp'))).toEqual([])
  })

  test('a blob that is kept while someone discards it is there, or is known to be gone', async () => {
    const store = createDirectoryBlobStore(path.join(root, 'contested'))
    for (let round = 0; round < 100; round++) {
      const bytes = randomBytes(10)
      const { hash, modifiedAt } = await store.put(bytes)
      const [isGone, kept] = await Promise.all([store.discard(hash, modifiedAt!), store.keep(hash)])
      expect(await store.has(hash)).toBe(!isGone)
      if (kept) expect(isGone).toBe(false)
    }
    expect(await readdir(path.join(root, 'contested', 'tmp'))).toEqual([])
  })

  test('no one misses a blob that someone fails to discard', async () => {
    const store = createDirectoryBlobStore(path.join(root, 'in-use'))
    const { hash } = await store.put(randomBytes(10))
    const discarding = (async () => {
      for (let round = 0; round < 300; round++) await store.discard(hash, 0)
    })()
    for (let round = 0; round < 300; round++) await store.read(hash)
    await discarding
  })

  test('a blob whose discarder died in between gets its name back', async () => {
    const folder = path.join(root, 'interrupted')
    const store = createDirectoryBlobStore(folder)
    const bytes = randomBytes(10)
    const { hash } = await store.put(bytes)
    await rename(path.join(folder, hash.slice(0, 2), hash), path.join(folder, 'tmp', `${hash}-0123456789ab`))
    await store.sweep(Date.now() + 60_000)
    expect((await store.read(hash)).equals(bytes)).toBe(true)
    expect(await readdir(path.join(folder, 'tmp'))).toEqual([])
  })

  test.each([
    ['off the thread', offThreadCalls],
    ['directly', directCalls],
  ])(
    'of many that are stored at once, called %s, each has its bytes, then its name, then its folder on disk',
    async (_, calls) => {
      const folder = path.join(root, `ordered-${randomBytes(4).toString('hex')}`)
      const done: string[] = []
      const store = createDirectoryBlobStore(folder, recorded(calls, done))
      const blobs = Array.from({ length: 100 }, () => randomBytes(100))
      await Promise.all(
        blobs.map(async (bytes) => {
          const { hash } = await store.put(bytes)
          const named = done.findIndex((step) => step.startsWith('name ') && step.endsWith(hash))
          const draft = done[named]!.split(' ')[1]!
          const asked = done.indexOf(`sync ${hash.slice(0, 2)}`, named)
          expect(done.indexOf(`bytes ${draft}`)).toBeGreaterThan(-1)
          expect(named).toBeGreaterThan(done.indexOf(`bytes ${draft}`))
          expect(asked).toBeGreaterThan(named)
          expect(done.indexOf(`synced ${hash.slice(0, 2)}`, asked)).toBeGreaterThan(asked)
        }),
      )
      expect(done.filter((step) => /^synced [0-9a-f]{2}$/.test(step)).length).toBeLessThanOrEqual(blobs.length)
    },
  )

  test('of several in one call each has its bytes, then its name on disk, and no folder is synced twice', async () => {
    const done: string[] = []
    const store = createDirectoryBlobStore(path.join(root, 'several'), recorded(directCalls, done))
    const known = await store.put(randomBytes(100))
    const blobs = Array.from({ length: 400 }, () => randomBytes(100))
    done.length = 0
    const stored = await store.putAll([...blobs, await store.read(known.hash), blobs[0]!])
    expect(stored.map(({ hash }) => hash)).toEqual([...blobs.map(sha256), known.hash, stored[0]!.hash])
    expect((await store.read(stored[399]!.hash)).equals(blobs[399]!)).toBe(true)
    expect(stored.filter(({ modifiedAt }) => modifiedAt !== undefined)).toHaveLength(400)
    const folders = done.filter((step) => /^synced [0-9a-f]{2}$/.test(step))
    expect(new Set(folders).size).toBe(folders.length)
    expect(new Set(folders)).toEqual(new Set(stored.map(({ hash }) => `synced ${hash.slice(0, 2)}`)))
    const lastName = done.findLastIndex((step) => step.startsWith('name '))
    expect(done.findIndex((step) => /^sync [0-9a-f]{2}$/.test(step))).toBeGreaterThan(lastName)
    for (const step of done.filter((one) => one.startsWith('name ')))
      expect(done.slice(0, done.indexOf(step))).toContain(`bytes ${step.split(' ')[1]}`)
  })

  test('a blob whose name another writer gave a moment ago is kept once the name is on disk; an older one costs no sync', async () => {
    const done: string[] = []
    const folder = path.join(root, 'young')
    const store = createDirectoryBlobStore(folder, recorded(directCalls, done))
    const bytes = randomBytes(100)
    const { hash } = await store.put(bytes)
    const ways: Record<string, () => Promise<unknown>> = {
      put: () => store.put(bytes),
      putAll: () => store.putAll([bytes]),
      writer: async () => {
        const writer = await store.writer()
        await writer.write(bytes)
        return writer.finish()
      },
    }
    const syncsOf = async (way: () => Promise<unknown>, mtime: Date): Promise<string[]> => {
      await utimes(path.join(folder, hash.slice(0, 2), hash), mtime, mtime)
      done.length = 0
      await way()
      return done.filter((step) => step.startsWith('synced'))
    }
    for (const [name, way] of Object.entries(ways)) {
      expect(await syncsOf(way, new Date()), name).toEqual([`synced ${hash.slice(0, 2)}`])
      expect(await syncsOf(way, new Date(0)), name).toEqual([])
    }
  })

  test('a folder that cannot be synced fails those who wait for it, and no later ones', async () => {
    let isBroken = true
    const store = createDirectoryBlobStore(path.join(root, 'unsynced'), {
      ...offThreadCalls,
      async open(file, flags) {
        const opened = await offThreadCalls.open(file, flags)
        if (!/^[0-9a-f]{2}$/.test(path.basename(file))) return opened
        return wrapped(opened, {
          sync: async () => {
            if (isBroken) throw new Error('the disk is broken')
            await opened.sync()
          },
        })
      },
    })
    const bytes = randomBytes(10)
    await expect(Promise.all([store.put(bytes), store.put(randomBytes(10))])).rejects.toThrow('the disk is broken')
    isBroken = false
    const later = randomBytes(10)
    expect((await store.read((await store.put(later)).hash)).equals(later)).toBe(true)
  })

  test('sweeps the drafts of writers that died, and no others', async () => {
    const folder = path.join(root, 'swept')
    const store = createDirectoryBlobStore(folder)
    const alive = await store.writer()
    await writeFile(path.join(folder, 'tmp', 'dead'), 'x')
    await utimes(path.join(folder, 'tmp', 'dead'), 0, 0)
    expect(await store.sweep(Date.now() - 60_000)).toBe(1)
    await alive.write(Buffer.from('y'))
    await alive.finish()
    expect(await readdir(path.join(folder, 'tmp'))).toEqual([])
  })
})

function wrapped(file: OpenFile, other: Partial<OpenFile>): OpenFile {
  return {
    write: (chunk, offset) => file.write(chunk, offset),
    stat: () => file.stat(),
    datasync: () => file.datasync(),
    sync: () => file.sync(),
    close: () => file.close(),
    ...other,
  }
}

/** Notes what has become durable, and the names that were given, in order. */
function recorded(calls: FileCalls, done: string[]): FileCalls {
  return {
    ...calls,
    async open(file, flags) {
      const name = path.basename(file)
      const opened = await calls.open(file, flags)
      return wrapped(opened, {
        async datasync() {
          await opened.datasync()
          done.push(`bytes ${name}`)
        },
        async sync() {
          done.push(`sync ${name}`)
          await opened.sync()
          done.push(`synced ${name}`)
        },
      })
    },
    async link(file, name) {
      await calls.link(file, name)
      done.push(`name ${path.basename(file)} ${path.basename(name)}`)
    },
  }
}

describe('the cache in front of a distant store', () => {
  function cached(maxBytes: number) {
    const distant = createDirectoryBlobStore(path.join(root, `distant-${randomBytes(4).toString('hex')}`))
    const folder = path.join(root, `copies-${randomBytes(4).toString('hex')}`)
    const copies = createDirectoryBlobStore(folder)
    const fileOf = (hash: string): string => path.join(folder, hash.slice(0, 2), hash)
    return { store: createCachedBlobStore({ distant, copies, maxBytes }), distant, copies, fileOf }
  }

  test('asks once for a blob that many want at the same time', async () => {
    const { store, distant, copies } = cached(1_000_000)
    const { hash } = await distant.put(randomBytes(1000))
    const { read: readDistant } = distant
    const { read: readCopy } = copies
    const missed = Promise.withResolvers<void>()
    let misses = 0
    vi.spyOn(copies, 'read').mockImplementation(async (wanted) => {
      try {
        return await readCopy(wanted)
      } finally {
        if (++misses === 50) missed.resolve()
      }
    })
    // It takes until all of them have looked for a copy.
    const read = vi
      .spyOn(distant, 'read')
      .mockImplementation((wanted) => missed.promise.then(() => readDistant(wanted)))
    await Promise.all(Array.from({ length: 50 }, () => store.read(hash)))
    await store.read(hash)
    expect(read).toHaveBeenCalledTimes(1)
  })

  test('a failed fetch is not remembered', async () => {
    const { store, distant } = cached(1_000_000)
    const { hash } = await distant.put(randomBytes(1000))
    vi.spyOn(distant, 'read').mockRejectedValueOnce(new Error('network'))
    await expect(store.read(hash)).rejects.toThrow('network')
    expect(await store.read(hash)).toHaveLength(1000)
  })

  const sizeOf = async (copies: BlobStore): Promise<number> =>
    (await collect(copies.list())).reduce((sum, blob) => sum + blob.size, 0)

  test('stays within its bound', async () => {
    const { store, distant, copies } = cached(100_000)
    for (let count = 0; count < 60; count++) {
      const { hash } = await distant.put(randomBytes(10_000))
      await store.read(hash)
    }
    await expect.poll(() => sizeOf(copies)).toBeLessThanOrEqual(110_000)
    expect(await sizeOf(copies)).toBeGreaterThan(0)
  })

  test('with cache_mb=0 there are no copies, and those of before go', async () => {
    const cache = path.join(root, 'given-up')
    const bytes = randomBytes(1000)
    const { hash } = await openBlobStore({ url: server.url({ cache }) }).put(bytes)
    expect(await readdir(path.join(cache, 'copies'))).toContain(hash.slice(0, 2))
    const store = openBlobStore({ url: server.url({ cache, cacheMb: 0 }) })
    expect((await store.read(hash)).equals(bytes)).toBe(true)
    expect(Buffer.concat(await collect(store.stream(hash))).equals(bytes)).toBe(true)
    await expect.poll(() => readdir(cache)).not.toContain('copies')
  })

  test('with cache_mb=0 what others keep in the directory of the copies stays', async () => {
    const cache = path.join(root, 'shared-with-others')
    const copies = path.join(cache, 'copies')
    await openBlobStore({ url: server.url({ cache }) }).put(randomBytes(1000))
    await writeFile(path.join(copies, 'notes.txt'), 'ours')
    openBlobStore({ url: server.url({ cache, cacheMb: 0 }) })
    await expect.poll(() => readdir(copies)).toEqual(['notes.txt'])
  })

  test('serves on when copies cannot be written', async () => {
    const { store, distant, copies } = cached(1_000_000)
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    vi.spyOn(copies, 'put').mockRejectedValue(full)
    vi.spyOn(copies, 'writer').mockRejectedValue(full)
    const bytes = randomBytes(5000)
    const { hash } = await distant.put(bytes)
    expect((await store.read(hash)).equals(bytes)).toBe(true)
    expect(Buffer.concat(await collect(store.stream(hash))).equals(bytes)).toBe(true)
  })

  test('a disk that is full for a moment while a blob streams leaves no copy with a gap, and is told once', async () => {
    const distant = createDirectoryBlobStore(path.join(root, 'distant-gap'))
    const copies = createDirectoryBlobStore(path.join(root, 'copies-gap'))
    const problems: Error[] = []
    const store = createCachedBlobStore({ distant, copies, maxBytes: 10e6, onProblem: (error) => problems.push(error) })
    const bytes = randomBytes(300_000)
    const { hash } = await distant.put(bytes)
    const { writer } = copies
    vi.spyOn(copies, 'writer').mockImplementation(async () => {
      const draft = await writer()
      const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
      vi.spyOn(draft, 'write').mockRejectedValueOnce(full)
      return draft
    })
    for (let turn = 0; turn < 2; turn++)
      expect(Buffer.concat(await collect(store.stream(hash))).equals(bytes)).toBe(true)
    expect(await copies.has(hash)).toBe(false)
    expect(await readdir(path.join(root, 'copies-gap', 'tmp'))).toEqual([])
    expect(problems).toHaveLength(1)
  })

  test('stays within its bound when everything is streamed', async () => {
    const { store, distant, copies } = cached(100_000)
    for (let count = 0; count < 30; count++) {
      const { hash } = await distant.put(randomBytes(20_000))
      await collect(store.stream(hash))
    }
    await expect.poll(() => sizeOf(copies)).toBeLessThanOrEqual(120_000)
    expect(await sizeOf(copies)).toBeGreaterThan(0)
  })

  test.each<[string, (good: Buffer) => Buffer]>([
    ['empty', () => Buffer.alloc(0)],
    ['cut short', (good) => good.subarray(0, 30_000)],
  ])('a copy that is %s is noticed, made up for and replaced', async (_, damage) => {
    const { store, distant, copies, fileOf } = cached(10e6)
    const bytes = randomBytes(100_000)
    const { hash } = await distant.put(bytes)
    const ways: (() => Promise<boolean>)[] = [
      async () => (await store.read(hash)).equals(bytes),
      async () => Buffer.concat(await collect(store.stream(hash))).equals(bytes),
      async () =>
        Buffer.concat(await collect(store.stream(hash, { start: 10, end: 99_999 }))).equals(bytes.subarray(10)),
    ]
    for (const isRight of ways) {
      await copies.put(bytes)
      await writeFile(fileOf(hash), damage(bytes))
      expect(await isRight()).toBe(true)
      await store.read(hash)
      expect((await copies.read(hash)).equals(bytes)).toBe(true)
    }
  })

  test('a copy with other bytes is not served twice', async () => {
    const { store, distant, copies, fileOf } = cached(10e6)
    const bytes = randomBytes(1000)
    const { hash } = await distant.put(bytes)
    for (const useOnce of [() => store.read(hash), () => collect(store.stream(hash)).catch(() => undefined)]) {
      await copies.put(bytes)
      await writeFile(fileOf(hash), randomBytes(1000))
      await useOnce()
      expect((await store.read(hash)).equals(bytes)).toBe(true)
    }
  })

  test('a copy that goes while it is asked for costs no one an answer', async () => {
    const { store, distant, copies, fileOf } = cached(10e6)
    const { hash } = await distant.put(randomBytes(1000))
    await copies.put(await distant.read(hash))
    const { stream } = copies
    vi.spyOn(copies, 'stream').mockImplementation((name, range) => {
      rmSync(fileOf(name), { force: true })
      return stream(name, range)
    })
    expect(Buffer.concat(await collect(store.stream(hash)))).toHaveLength(1000)
  })

  test('a blob that was streamed to its end is there the next time', async () => {
    const { store, distant } = cached(1_000_000)
    const { hash } = await distant.put(randomBytes(5000))
    await collect(store.stream(hash))
    vi.spyOn(distant, 'stream').mockImplementation(() => expect.fail('asked the distant store'))
    expect(Buffer.concat(await collect(store.stream(hash)))).toHaveLength(5000)
  })
})

describe('S3', () => {
  test('bytes that changed on the way are not served', async () => {
    const store = stores['S3']!()
    const { hash } = await store.put(randomBytes(1000))
    const objects = await readdir(path.join(root, 's3', 'drops'), { recursive: true })
    const object = objects.find((name) => name.includes(`${hash}.`) && name.endsWith('_object'))!
    const file = path.join(root, 's3', 'drops', object)
    expect((await stat(file)).size).toBe(1000)
    await writeFile(file, randomBytes(1000))
    await expect(store.read(hash)).rejects.toThrow('other bytes')
    await expect(collect(store.stream(hash))).rejects.toThrow('other bytes')
  })

  test('a reader who leaves while it stalls leaves nothing open', async () => {
    const closed: Promise<unknown>[] = []
    const stalling = http.createServer((_, answer) => {
      closed.push(once(answer, 'close'))
      answer.writeHead(200, { 'content-length': 1000 }).write('a beginning')
    })
    await once(stalling.listen(0, '127.0.0.1'), 'listening')
    const { port } = stalling.address() as AddressInfo
    const cache = path.join(root, 'stalled')
    const store = openBlobStore({ url: `s3://key:secret@drops?endpoint=http://127.0.0.1:${port}&cache=${cache}` })
    try {
      for (const range of [undefined, { start: 0, end: 999 }]) {
        const stream = store.stream(ABSENT, range)
        await once(
          stream.on('data', () => {}),
          'data',
        )
        stream.destroy()
        await once(stream, 'close')
      }
      await Promise.all(closed)
      expect(closed).toHaveLength(2)
      expect(await readdir(path.join(cache, 'copies', 'tmp'))).toEqual([])
    } finally {
      stalling.closeAllConnections()
      stalling.close()
    }
  })

  test('a wrong setting is told without the secret', () => {
    expect(() => openBlobStore({ url: 's3://key:hush@bucket' })).toThrow(/endpoint/)
    expect(() => openBlobStore({ url: 's3://key:hush@bucket' })).not.toThrow(/hush/)
    expect(() => openBlobStore({ url: 'ftp://x' })).toThrow(/BLOB_STORE/)
  })
})
