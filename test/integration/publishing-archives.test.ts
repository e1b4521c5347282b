import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import zlib from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PreparedVersion } from '../../control/drops/publishing/contract.ts'
import { hostileArchives } from '../support/hostile-archives.ts'
import { chunksOf, startPublishing, type PublishingFixture } from '../support/publishing.ts'
import { rawZip, zip64Extra, type RawEntry } from '../support/raw-zip.ts'

const OWNER = { kind: 'organisation', id: 'org' } as const

const CAP_BYTES = 20_000_000

let fixture: PublishingFixture
beforeAll(async () => {
  fixture = await startPublishing()
})
afterAll(() => fixture.close())

async function publish(bytes: Buffer, capBytes = CAP_BYTES): Promise<PreparedVersion> {
  const intake = fixture.publishing.receive({ owner: OWNER, capBytes })
  try {
    await intake.addZip(chunksOf(bytes))
    return await intake.finish()
  } finally {
    await intake.abort()
  }
}

async function pathsOf(prepared: PreparedVersion): Promise<string[]> {
  return (await fixture.publishing.readManifest(prepared.manifestHash)).files.map(([path]) => path)
}

const INDEX: RawEntry = { name: 'index.html', data: '<p>hello' }

describe('hostile archives are refused, named, and leave nothing behind', () => {
  const archives = hostileArchives()

  test('there are at least forty kinds', () =>
    expect(new Set(archives.map((archive) => archive.kind)).size).toBeGreaterThanOrEqual(40))

  test.each(archives.map((archive) => [archive.kind, archive] as const))('%s', async (_, archive) => {
    const before = await fixture.leftovers()
    const refusal = await publish(archive.bytes).then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(refusal).toMatchObject({ status: 400, code: 'archive_rejected' })
    expect((refusal as Error).message).toMatch(archive.names)
    // oxlint-disable-next-line no-control-regex -- no control character may reach a log or a terminal
    expect((refusal as Error).message).not.toMatch(/[\u0000-\u001f]/)
    expect(await fixture.leftovers()).toEqual(before)
  })
})

describe('nothing of an archive is stored before all of it has been checked', () => {
  const files = (bytes: number): RawEntry[] =>
    Array.from({ length: 8 }, (_, index) => ({
      name: `${index}.bin`,
      data: Buffer.concat([randomBytes(16), Buffer.alloc(bytes)]),
    }))

  test.each([
    ['small files', files(2_000)],
    ['files that are inflated in pieces', files(4_100_000)],
  ])('%s, of which the last one lies', async (_, entries) => {
    const untouched = await startPublishing()
    try {
      const intake = untouched.publishing.receive({ owner: OWNER, capBytes: 100_000_000 })
      const lie: RawEntry = { ...entries[0]!, name: 'last', crc32: 1 }
      await expect(intake.addZip(chunksOf(rawZip([INDEX, ...entries, lie])))).rejects.toMatchObject({
        code: 'archive_rejected',
        message: expect.stringContaining('"last" has a wrong checksum') as string,
      })
      await intake.abort()
      expect(existsSync(untouched.storeDir)).toBe(false)
    } finally {
      await untouched.close()
    }
  })
})

describe('caps', () => {
  test('an archive that announces more than the cap is refused before anything is unpacked', async () => {
    const before = await fixture.leftovers()
    const packed = zlib.deflateRawSync(Buffer.alloc(CAP_BYTES + 1))
    const bomb = rawZip([INDEX, { name: 'bomb', packed, size: CAP_BYTES + 1, crc32: 0 }])
    await expect(publish(bomb)).rejects.toMatchObject({ status: 413, code: 'upload_too_large' })
    expect(await fixture.leftovers()).toEqual(before)
  })

  test('a zip64 entry that announces terabytes is refused', async () => {
    const entry: RawEntry = {
      name: 'huge',
      data: 'x',
      size: 0xffffffff,
      extra: zip64Extra(2n ** 42n),
      local: { size: 1 },
    }
    await expect(
      publish(
        rawZip([
          INDEX,
          { ...entry, local: { size: 0xffffffff, compressedSize: 0xffffffff, extra: zip64Extra(2n ** 42n, 3n) } },
        ]),
      ),
    ).rejects.toMatchObject({ status: 413 })
  })

  test('reading stops soon after the cap', async () => {
    let sent = 0
    async function* endless(): AsyncGenerator<Uint8Array> {
      const chunk = new Uint8Array(100_000)
      for (;;) {
        sent += chunk.length
        yield chunk
      }
    }
    const intake = fixture.publishing.receive({ owner: OWNER, capBytes: 1_000_000 })
    await expect(intake.addZip(endless())).rejects.toMatchObject({ status: 413 })
    await intake.abort()
    expect(sent).toBeLessThanOrEqual(1_000_000 + 200_000)
  })

  test('an archive whose own bytes are over the cap is refused, however little it unpacks to', async () => {
    const zip = rawZip([INDEX, { name: '__MACOSX/._a', data: randomBytes(1000), method: 0 }])
    await expect(publish(zip, zip.length - 1)).rejects.toMatchObject({ status: 413, code: 'upload_too_large' })
    expect(await pathsOf(await publish(zip, zip.length))).toEqual(['index.html'])
  })

  test.each([0, 40])('a caller that goes away after %d bytes leaves nothing behind', async (bytes) => {
    const before = await fixture.leftovers()
    async function* broken(): AsyncGenerator<Uint8Array> {
      if (bytes > 0) yield rawZip([INDEX]).subarray(0, bytes)
      throw new Error('connection lost')
    }
    const intake = fixture.publishing.receive({ owner: OWNER, capBytes: CAP_BYTES })
    await expect(intake.addZip(broken())).rejects.toThrow('connection lost')
    await intake.abort()
    expect(await fixture.leftovers()).toEqual(before)
  })
})

describe('archives as people make them', () => {
  test('files, folders and empty files', async () => {
    const zip = rawZip([
      { name: 'css/', mode: 0o040755, method: 0 },
      INDEX,
      { name: 'css/a.css', data: 'a{}' },
      { name: '.nojekyll' },
    ])
    const prepared = await publish(zip)
    expect(await pathsOf(prepared)).toEqual(['.nojekyll', 'css/a.css', 'index.html'])
    expect(prepared).toMatchObject({ fileCount: 3, byteSize: 8 + 3 })
  })

  test('one top folder is unwrapped, and clutter of operating systems is left out', async () => {
    const zip = rawZip([
      { name: 'site/', mode: 0o040755, method: 0 },
      { ...INDEX, name: 'site/index.html' },
      { name: 'site/a/b.txt', data: 'b' },
      { name: 'site/.DS_Store', data: 'x' },
      { name: '__MACOSX/site/._index.html', data: 'x' },
    ])
    const prepared = await publish(zip)
    expect(await pathsOf(prepared)).toEqual(['a/b.txt', 'index.html'])
    expect(prepared.fileCount).toBe(2)
    expect(prepared.report.warnings.map(({ code, path }) => [code, path])).toEqual([
      ['never_served', 'site/.DS_Store'],
      ['never_served', '__MACOSX/site/._index.html'],
    ])
  })

  test('addresses of the service in an unwrapped folder are left out', async () => {
    const zip = rawZip([
      { ...INDEX, name: 'site/index.html' },
      { name: 'site/.dropway/badge', data: 'x' },
    ])
    const prepared = await publish(zip)
    expect(await pathsOf(prepared)).toEqual(['index.html'])
    expect(prepared.report.warnings.map(({ code, path }) => [code, path])).toEqual([['never_served', '.dropway/badge']])
  })

  test('a top folder stays when something lies beside it', async () => {
    const zip = rawZip([
      { ...INDEX, name: 'site/index.html' },
      { name: 'other.txt', data: 'x' },
    ])
    await expect(publish(zip)).rejects.toMatchObject({
      code: 'missing_index',
      message: expect.stringContaining('"site/"'),
    })
  })

  test('sizes after the data, zip64 fields, no unix modes, names without the UTF-8 flag', async () => {
    const late: RawEntry = {
      name: 'late.txt',
      data: 'late',
      flags: 0x0808,
      local: { crc32: 0, size: 0, compressedSize: 0 },
    }
    const wide: RawEntry = {
      name: 'wide.txt',
      data: 'wide',
      method: 0,
      size: 0xffffffff,
      compressedSize: 0xffffffff,
      extra: zip64Extra(4n, 4n),
      local: { extra: zip64Extra(4n, 4n) },
    }
    const dos: RawEntry = { name: 'dos.txt', data: 'dos', mode: 0, madeBy: 20 }
    const mac: RawEntry = { name: 'grüße.txt', data: 'mac', flags: 0 }
    const historic: RawEntry = { name: Buffer.from([0x81, 0x2e, 0x74, 0x78, 0x74]), data: 'cp437', flags: 0 }
    const prepared = await publish(rawZip([INDEX, late, wide, dos, mac, historic], { zip64: {} }))
    expect(await pathsOf(prepared)).toEqual(['dos.txt', 'grüße.txt', 'index.html', 'late.txt', 'wide.txt', 'ü.txt'])
  })

  test('a file larger than what is inflated in one go', async () => {
    const data = Buffer.alloc(6_000_000, 'dropway ')
    const prepared = await publish(rawZip([INDEX, { name: 'big.txt', data }, { name: 'stored.bin', data, method: 0 }]))
    const manifest = await fixture.publishing.readManifest(prepared.manifestHash)
    const big = manifest.files.find(([path]) => path === 'big.txt')![1]
    expect((await fixture.blobs.read(big.hash)).equals(data)).toBe(true)
    expect(prepared.byteSize).toBe(12_000_008)
  })

  test.each([
    ['nothing', rawZip([]), 'holds no files'],
    [
      'a project with its output inside',
      rawZip([
        { name: 'package.json', data: '{}' },
        { ...INDEX, name: 'dist/index.html' },
      ]),
      '"dist/"',
    ],
    ['a page of another name', rawZip([{ name: 'Index.HTML', data: 'x' }]), 'Rename'],
  ])('without an index.html at the root: %s', async (_, zip, hint) => {
    await expect(publish(zip)).rejects.toMatchObject({
      status: 400,
      code: 'missing_index',
      message: expect.stringContaining(hint),
    })
  })
})
