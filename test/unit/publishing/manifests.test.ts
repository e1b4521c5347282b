/** How manifests are kept in memory, and how long ones are laid out: in parts, of which a reader decodes those that changed. */
import { hash as digestOf } from 'node:crypto'
import { expect, test } from 'vitest'
import { createManifests } from '../../../control/drops/publishing/manifest/manifests.ts'
import { buildManifest } from '../../../control/drops/publishing/manifest/manifest-builder.ts'
import type { BlobWriter, StoredBlob } from '../../../shared/blobs/blob-store.ts'
import { createManifestReader, manifestPart } from '../../../shared/content/manifest-reader.ts'
import { decodeManifest, encodeManifest, type Manifest, type ManifestFile } from '../../../shared/contracts/manifest.ts'
import { IS_DEEP, SEED } from '../../support/depth.ts'
import { createRandom, type Random } from '../../support/random.ts'

test('of many manifests the last thousand are read from memory, the others from the store', async () => {
  const store = createStore()
  const manifests = createManifests(store)
  const written: string[] = []
  for (let size = 1; size <= 1001; size++) written.push((await manifests.write(pageOf(size))).hash)
  const [oldest = '', second = ''] = written
  expect((await manifests.read(written.at(-1)!)).files).toEqual(pageOf(1001).files)
  await manifests.read(second)
  expect(store.reads()).toEqual([])
  expect((await manifests.read(oldest)).files).toEqual(pageOf(1).files)
  expect(store.reads()).toEqual([oldest])
})

test('a short manifest is one line; a long one has lines of its parts, and is JSON to any reader', async () => {
  const store = createStore()
  const manifests = createManifests(store)
  const textOf = async (manifest: Manifest) => (await store.read((await manifests.write(manifest)).hash)).toString()
  expect(await textOf(siteOf(2000))).toBe(JSON.stringify(siteOf(2000)))
  const text = await textOf(siteOf(3000))
  expect(JSON.parse(text)).toEqual(siteOf(3000))
  expect(text.split('\n').length).toBeGreaterThan(3000 / 1024)
  expect(text.split('\n').join('')).toBe(JSON.stringify(siteOf(3000)))
})

test('a long manifest is read as it was written, also as the release before wrote it', async () => {
  const store = createStore()
  const rest: Partial<Manifest> = {
    redirects: [{ from: '/a\nb', to: '/b', status: 301, force: false, line: 1 }],
    headers: [{ from: '/*', set: [['x-a', ',\n']], line: 1 }],
    kept: { files: [], headers: [] },
  }
  const site = siteOf(3000, rest)
  const { hash } = await createManifests(store).write(site)
  expect(await createManifests(store).read(hash)).toEqual(site)
  expect(decodeManifest(await store.read(hash))).toEqual(site)
  const before = await store.put(encodeManifest(site))
  expect(before.hash).not.toBe(hash)
  const manifests = createManifests(store)
  const read = await manifests.read(before.hash)
  expect(read).toEqual(site)
  // What is made of it is laid out like any other.
  expect((await manifests.write(read)).hash).toBe(hash)
  const changed = { ...read, files: read.files.with(7, entryOf('page-0007.html', 1)) }
  expect(await createManifests(store).read((await manifests.write(changed)).hash)).toEqual(changed)
})

test('a short manifest that was read is written again as it was', async () => {
  const store = createStore()
  const { hash } = await createManifests(store).write(pageOf(1))
  const manifests = createManifests(store)
  expect((await manifests.write(await manifests.read(hash))).hash).toBe(hash)
})

test('a name with a line feed or a comma at its end is no end of a line', async () => {
  const store = createStore()
  const odd = siteOf(3000)
  odd.files[1500] = entryOf('page-1500\n],[\n,\n')
  const { hash } = await createManifests(store).write(odd)
  expect(await createManifests(store).read(hash)).toEqual(odd)
})

/** Who reads manifests as an edge does, and counts the parts that it decodes. */
function createReader(store: Store) {
  const decoded: number[] = []
  const reader = createManifestReader(store, (files) => {
    decoded.push(files.length)
    return files
  })
  const read = async (hash: string) => (await reader.read(hash)).parts
  return { reader, read, decoded: () => decoded.splice(0).length }
}

test('who holds the version before decodes one part of the next, and shares the rest with it', async () => {
  const store = createStore()
  const manifests = createManifests(store)
  const before = await manifests.write(siteOf(3000))
  const next = await manifests.read(before.hash)
  const after = await manifests.write({ ...next, files: next.files.with(1500, entryOf('page-1500.html', 1)) })
  const { reader, read, decoded } = createReader(store)
  const known = await read(before.hash)
  reader.hold(known)
  expect(decoded()).toBe(known.length)
  const seen = await read(after.hash)
  expect(decoded()).toBe(1)
  expect(seen.flatMap((part) => part.read)).toEqual((await manifests.read(after.hash)).files)
  expect(seen.filter((part) => known.includes(part))).toHaveLength(known.length - 1)
})

test('a part is found as long as somebody holds it, and as often as it was held', async () => {
  const store = createStore()
  const { hash } = await createManifests(store).write(siteOf(3000))
  const { reader, read, decoded } = createReader(store)
  const first = await read(hash)
  const all = decoded()
  reader.hold(first)
  const second = await read(hash)
  reader.hold(second)
  expect([second, decoded()]).toEqual([first, 0])
  reader.release(first)
  await read(hash)
  expect(decoded()).toBe(0)
  reader.release(second)
  await read(hash)
  expect(decoded()).toBe(all)
})

test.each([[[0, 1, 2]], [[1, 0, 2]], [[2, 1, 0]]])(
  'two who read the same at once hold the same parts, and a third, until all of them release, in the order %j',
  async (order) => {
    const store = createStore()
    const { hash } = await createManifests(store).write(siteOf(3000))
    const { reader, read, decoded } = createReader(store)
    const [first, second] = await Promise.all([read(hash), read(hash)])
    const held = [reader.hold(first), reader.hold(second), reader.hold(await read(hash))]
    decoded()
    for (const index of order) {
      expect(await read(hash)).toEqual(first)
      expect(decoded()).toBe(0)
      reader.release(held[index]!)
    }
    await read(hash)
    expect(decoded()).toBe(first.length)
  },
)

test('of what is in memory already, what is written has the very files', async () => {
  const store = createStore()
  const manifests = createManifests(store)
  const { hash } = await manifests.write(siteOf(3000))
  const other = await manifests.write({
    ...siteOf(3000),
    redirects: [{ from: '/a', to: '/b', status: 301, force: false, line: 1 }],
  })
  const [one, two] = [await manifests.read(hash), await manifests.read(other.hash)]
  expect(two.files.every(([, file], index) => file === one.files[index]![1])).toBe(true)
  expect(store.reads()).toEqual([])
})

test('a text with the checksum of another is not taken for it', async () => {
  const store = createStore()
  const { hash } = await createManifests(store).write(siteOf(3000))
  const { reader, read, decoded } = createReader(store)
  const held = (await read(hash)).map(({ text, read: files }) => manifestPart(Buffer.from(text!), files))
  reader.hold(held)
  // They are found by what they were.
  for (const { text } of held) text.reverse()
  decoded()
  await read(hash)
  expect(decoded()).toBe(held.length)
})

test.each([
  ['a part that is no JSON', (text: string) => text.replace('],\n[', '],\n[[')],
  ['a part with an entry that is no file', (text: string) => text.replace('"size":', '"sizes":')],
  ['an end that is missing', (text: string) => text.slice(0, text.lastIndexOf('\n'))],
  ['an end that is no JSON', (text: string) => text.slice(0, -1)],
  ['a later format', (text: string) => text.replace('"v":1', '"v":2')],
])('%s is refused', async (_, broken) => {
  const store = createStore()
  const { hash } = await createManifests(store).write(siteOf(3000))
  const { hash: other } = await store.put(Buffer.from(broken((await store.read(hash)).toString())))
  await expect(createManifests(store).read(other)).rejects.toThrow()
})

test('one that cannot be written is given up, and is not in memory', async () => {
  const store = createStore()
  let aborted = 0
  const full: Store = {
    ...store,
    async writer() {
      const writer = await store.writer()
      let pieces = 0
      return {
        ...writer,
        async write(piece) {
          if (++pieces === 5) throw new Error('the disk is full')
          await writer.write(piece)
        },
        abort: async () => void (aborted += 1),
      }
    },
  }
  const manifests = createManifests(full)
  await expect(manifests.write(siteOf(3000))).rejects.toThrow('the disk is full')
  expect(aborted).toBe(1)
  const { hash } = await createManifests(store).write(siteOf(3000))
  expect(await manifests.read(hash)).toEqual(siteOf(3000))
  expect(store.reads()).toEqual([hash])
})

test.each(Array.from({ length: IS_DEEP ? 200 : 8 }, (_, index) => 1000 * SEED + index))(
  'what is written beside former versions is what would be written without them (seed %i)',
  async (seed) => {
    const random = createRandom(seed)
    const store = createStore()
    const manifests = createManifests(store)
    let manifest = siteOf(2001 + random.below(3000))
    for (let version = 0; version < 4; version++) {
      const { hash } = await manifests.write(manifest)
      expect((await createManifests(store).write(structuredClone(manifest))).hash).toBe(hash)
      const reader = createManifests(store)
      expect(await reader.read(hash)).toEqual(manifest)
      const live = await (random.chance(0.5) ? manifests : reader).read(hash)
      manifest = { ...live, files: edited(live.files, random) }
    }
  },
)

/** Some files of a site more, less, or others. */
function edited(files: Manifest['files'], random: Random): Manifest['files'] {
  const next = [...files]
  for (let edit = random.below(5); edit >= 0; edit--) {
    const at = random.below(next.length)
    const name = `page-${random.below(9999)}-${edit}.html`
    next.splice(at, random.below(3), ...(random.chance(0.7) ? [entryOf(name, random.below(99))] : []))
  }
  const unique = new Map(next)
  return [...unique].toSorted(([a], [b]) => (a < b ? -1 : 1))
}

interface Store {
  put(bytes: Uint8Array): Promise<StoredBlob>
  writer(): Promise<BlobWriter>
  read(hash: string): Promise<Buffer>
  /** What was read since it was asked last. */
  reads(): string[]
}

function createStore(): Store {
  const stored = new Map<string, Buffer>()
  const read: string[] = []
  const put = async (bytes: Uint8Array): Promise<StoredBlob> => {
    const hash = digestOf('sha256', bytes)
    stored.set(hash, Buffer.from(bytes))
    return { hash, size: bytes.length }
  }
  return {
    put,
    async writer() {
      const pieces: Uint8Array[] = []
      return {
        write: async (piece) => void pieces.push(piece),
        finish: () => put(Buffer.concat(pieces)),
        abort: async () => {},
      }
    },
    async read(hash) {
      read.push(hash)
      const bytes = stored.get(hash)
      if (!bytes) throw new Error(`${hash} was never stored`)
      return bytes
    },
    reads: () => read.splice(0),
  }
}

function fileOf(text: string): ManifestFile {
  return { hash: digestOf('sha256', text), size: text.length, type: 'text/html; charset=utf-8' }
}

function entryOf(name: string, content = 0): Manifest['files'][number] {
  return [name, fileOf(`${name} ${content}`)]
}

function siteOf(count: number, rest: Partial<Manifest> = {}): Manifest {
  const files = Array.from({ length: count }, (_, index) => entryOf(`page-${String(index).padStart(4, '0')}.html`))
  return { v: 1, files, redirects: [], headers: [], unserved: [], ...rest }
}

function pageOf(size: number): Manifest {
  const hash = size.toString(16).padStart(64, '0')
  return buildManifest({
    files: [{ path: 'index.html', hash, size }],
    factsOf: () => undefined,
    redirects: [],
    headers: [],
  })
}
