import { randomBytes } from 'node:crypto'
import { readdir, readlink } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import yauzl from 'yauzl'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Manifest } from '../../shared/contracts/manifest.ts'
import { chunksOf, startPublishing, type PublishingFixture } from '../support/publishing.ts'

const OWNER = { kind: 'organisation', id: 'org' } as const

let fixture: PublishingFixture
beforeAll(async () => {
  fixture = await startPublishing()
})
afterAll(() => fixture.close())

async function unzip(bytes: Buffer): Promise<Map<string, Buffer>> {
  const zip = await yauzl.fromBufferPromise(bytes)
  const files = new Map<string, Buffer>()
  for await (const entry of zip.eachEntry())
    files.set(entry.fileName, await buffer(await zip.openReadStreamPromise(entry)))
  return files
}

async function publish(files: Record<string, string | Buffer>, single = false): Promise<Manifest> {
  const intake = fixture.publishing.receive({ owner: OWNER, capBytes: 50_000_000 })
  for (const [name, content] of Object.entries(files)) {
    await (single ? intake.addSingle(name, chunksOf(content), {}) : intake.addFile(name, chunksOf(content)))
  }
  return fixture.publishing.readManifest((await intake.finish()).manifestHash)
}

/** Blobs of this store that are held open. */
async function openBlobs(): Promise<string[]> {
  const handles = await readdir('/proc/self/fd')
  const files = await Promise.all(handles.map((handle) => readlink(`/proc/self/fd/${handle}`).catch(() => '')))
  return files.filter((file) => file.startsWith(fixture.storeDir) && /\/[0-9a-f]{64}$/.test(file))
}

describe('export', () => {
  test('holds every file as it was uploaded, in a folder per drop, and the metadata', async () => {
    const picture = randomBytes(200_000)
    const site = await publish({ 'index.html': '<p>1', 'a/pic.png': picture, _redirects: '/a /b', '.empty': '' })
    const note = await publish({ 'note.md': '# Hi' }, true)
    async function* sites() {
      yield { slug: 'site', manifest: site, metadata: { slug: 'site', name: 'Site' } }
      yield { slug: 'note', manifest: note, metadata: { slug: 'note', name: '' } }
    }
    const files = await unzip(await buffer(fixture.publishing.exportZip(sites())))
    expect([...files.keys()].toSorted()).toEqual(
      [
        'dropway-export.json',
        'note/note.md',
        'site/.empty',
        'site/_redirects',
        'site/a/pic.png',
        'site/index.html',
      ].toSorted(),
    )
    expect(files.get('site/a/pic.png')!.equals(picture)).toBe(true)
    expect(files.get('note/note.md')!.toString()).toBe('# Hi')
    expect(JSON.parse(files.get('dropway-export.json')!.toString())).toMatchObject({
      sites: [{ slug: 'site' }, { slug: 'note' }],
    })
  })

  test('nothing published gives an archive that opens', async () => {
    const none = Readable.from([]) as AsyncIterable<never>
    expect([...(await unzip(await buffer(fixture.publishing.exportZip(none)))).keys()]).toEqual(['dropway-export.json'])
  })

  test('reads no further than someone takes it', async () => {
    let asked = 0
    const manifest = await publish({ 'index.html': '<p>1', 'big.bin': randomBytes(2_000_000) })
    async function* sites() {
      for (; asked < 100; asked++) yield { slug: `s${asked}`, manifest, metadata: {} }
    }
    const stream = fixture.publishing.exportZip(sites())
    for await (const _ of stream) break
    expect(stream.destroyed).toBe(true)
    // Nothing is read any more once it has let go of what it had open.
    await expect.poll(openBlobs).toEqual([])
    expect(asked).toBeLessThan(5)
  })

  test('leaves no file open when someone goes away', async () => {
    const manifest = await publish({ 'index.html': '<p>1', 'a.bin': randomBytes(2_000_000) })
    async function* sites() {
      yield { slug: 's', manifest, metadata: {} }
    }
    for await (const _ of fixture.publishing.exportZip(sites())) break
    await expect.poll(openBlobs).toEqual([])
  })

  test('a blob of another size breaks the archive, and nothing else', async () => {
    const manifest = await publish({ 'index.html': '<p>1', 'a.bin': randomBytes(100) })
    for (const [, file] of manifest.files) file.size = 1
    async function* sites() {
      yield { slug: 's', manifest, metadata: {} }
    }
    await expect(buffer(fixture.publishing.exportZip(sites()))).rejects.toThrow('unexpected number of bytes')
  })

  test('a blob that is lost breaks the archive instead of shortening it', async () => {
    const manifest = await publish({ 'index.html': '<p>1', 'lost.bin': randomBytes(100) })
    const lost = new Map(manifest.files).get('lost.bin')!
    await fixture.blobs.remove(lost.hash)
    async function* sites() {
      yield { slug: 's', manifest, metadata: {} }
    }
    await expect(buffer(fixture.publishing.exportZip(sites()))).rejects.toThrow(lost.hash)
  })
})
