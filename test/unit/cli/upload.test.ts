/** How a folder is sent: what vanishes or changes on the way, and what is done when an answer does not come. */
import { mkdir, mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { runInProcess, type CliResult } from '../../support/cli-in-process.ts'
import { startServiceStandIn, type ServiceStandIn, type Trouble } from '../../support/service-stand-in.ts'

let home: string
let folder: string
let service: ServiceStandIn
beforeEach(async () => {
  home = await mkdtemp(path.join(os.tmpdir(), 'dropway-upload-'))
  folder = path.join(home, 'site')
  service = await startServiceStandIn()
  await write({ 'index.html': 'x' })
})
afterEach(async () => {
  await service.close()
  await rm(home, { recursive: true, force: true })
})

async function write(files: Readonly<Record<string, string | Buffer>>): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(folder, name), content)
}

const deploy = (...words: string[]): Promise<CliResult> =>
  runInProcess(['deploy', ...words], {
    cwd: folder,
    env: { HOME: home, DROPWAY_URL: service.url, DROPWAY_TOKEN: 'dw_x' },
  })

/** Does something when the first call of this kind arrives, before it is answered. */
function atCall(end: string, act: () => Promise<unknown>): void {
  let done = false
  service.before = async (call) => {
    if (done || !call.endsWith(end)) return
    done = true
    await act()
  }
}

const LARGE = Buffer.alloc(400_000, 'a')

test.each([
  ['a small file', 'note.txt', Buffer.from('note')],
  ['a large file', 'film.bin', LARGE],
])('%s that vanishes is named at once', async (_, name, content) => {
  await write({ [name]: content })
  atCall('/uploads', () => rm(path.join(folder, name)))
  const { code, stderr } = await deploy()
  expect([code, stderr]).toEqual([1, expect.stringContaining(`"${name}" is no longer there`)])
  expect(stderr).not.toContain('cannot be reached')
  expect(service.published).toEqual([])
})

test('a file that can no longer be read is named', async () => {
  await write({ 'film.bin': LARGE })
  atCall('/uploads', async () => {
    await rm(path.join(folder, 'film.bin'))
    await mkdir(path.join(folder, 'film.bin'))
  })
  const { code, stderr } = await deploy()
  expect([code, stderr]).toEqual([1, expect.stringContaining('"film.bin" cannot be read (EISDIR)')])
})

test('a large file that grows shorter while it is sent is named at once', async () => {
  await write({ 'film.bin': LARGE })
  atCall('/uploads', () => truncate(path.join(folder, 'film.bin'), 1000))
  const { code, stderr } = await deploy()
  expect([code, stderr]).toEqual([1, expect.stringContaining('"film.bin" changed while it was being sent')])
})

test('a page or document that vanishes or grows shorter is named', async () => {
  await write({ 'film.mp4': LARGE })
  service.before = async (call) => {
    if (call === 'POST /sites') await truncate(path.join(folder, 'film.mp4'), 1000)
  }
  const { code, stderr } = await deploy('film.mp4')
  expect([code, stderr]).toEqual([1, expect.stringContaining('"film.mp4" changed while it was being sent')])
})

const LOST: readonly [string, Trouble][] = [
  ['its connection breaks', { kind: 'cut', after: true }],
  ['504', { kind: 'answer', status: 504, error: 'no_answer', after: true }],
]

test.each(LOST)('what has arrived is not sent again when the answer is lost: %s', async (_, trouble) => {
  await write({ 'a.txt': 'a', 'b.txt': 'b', 'film.bin': LARGE })
  const hit = new Set<string>()
  service.trouble = (call) => {
    const kind = call.endsWith('/blobs') ? 'batch' : call.startsWith('PUT ') ? 'single' : undefined
    if (kind === undefined || hit.has(kind)) return undefined
    hit.add(kind)
    return trouble
  }
  const { code, stderr } = await deploy()
  expect(code, stderr).toBe(0)
  expect([...hit].toSorted()).toEqual(['batch', 'single'])
  expect(service.arrivals).toHaveLength(4)
  expect(new Set(service.arrivals).size).toBe(4)
})

test('of a batch that arrived in part the rest is sent', async () => {
  await write({ 'a.txt': 'a', 'b.txt': 'b', 'c.txt': 'c' })
  service.keepsOfNextBatch = 2
  const { code, stderr } = await deploy()
  expect(code, stderr).toBe(0)
  expect(service.arrivals).toHaveLength(4)
  expect(new Set(service.arrivals).size).toBe(4)
})

test('a publish whose answer stays away is gone on with by the next deploy, which sends nothing', async () => {
  await write({ 'a.txt': 'a', 'film.bin': LARGE })
  service.trouble = (call) =>
    call.endsWith('/finish') ? { kind: 'answer', status: 500, error: 'internal' } : undefined
  const broken = await deploy()
  expect([broken.code, broken.stderr]).toEqual([4, expect.stringContaining('Run the same command again to go on')])
  const { length } = service.arrivals
  service.forgetsBlobs = true
  service.trouble = () => undefined
  const { code, stderr } = await deploy()
  expect(code, stderr).toBe(0)
  expect(service.arrivals).toHaveLength(length)
  expect(service.published).toHaveLength(1)
  expect(await readdir(path.join(home, '.config', 'dropway', 'uploads'))).toEqual([])
})

test('a publish that takes longer than the edge waits is waited for', async () => {
  let asked = 0
  service.trouble = (call) =>
    call.endsWith('/finish') && ++asked < 3
      ? { kind: 'answer', status: 504, error: 'no_answer', after: asked === 2 }
      : undefined
  const { code, stderr } = await deploy()
  expect(code, stderr).toBe(0)
  expect(service.published).toHaveLength(1)
})

test('a preview whose publish is answered late is found at its name', async () => {
  service.trouble = (call) =>
    call.endsWith('/finish') && service.published.length === 0
      ? { kind: 'answer', status: 504, error: 'no_answer', after: true }
      : undefined
  const { code, stderr, stdout } = await deploy('--preview', 'draft')
  expect(code, stderr).toBe(0)
  expect(stderr).toContain('at the preview draft')
  expect(stdout.trim()).toMatch(/^https:\/\/draft--/)
  expect(service.published).toHaveLength(1)
})

test('what a refused first deploy leaves behind is told, and the refusal stays the reason', async () => {
  service.trouble = (call) =>
    call.endsWith('/finish') ? { kind: 'answer', status: 400, error: 'missing_index' } : undefined
  service.keepsDrops = true
  const { code, stderr } = await deploy('--slug', 'mine')
  expect([code, stderr]).toEqual([1, expect.stringContaining('So it was asked for.')])
  expect(stderr).toContain('The new drop mine stays, with nothing in it.')
  expect([...service.sites.values()].map(({ slug }) => slug)).toEqual(['mine'])
})
