/** Exports: where they may be written, and that they never go up again. */
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import yazl from 'yazl'
import { runInProcess, type CliResult, type InProcessOptions } from '../../support/cli-in-process.ts'
import { startServiceStandIn, type ServiceStandIn } from '../../support/service-stand-in.ts'

let home: string
let folder: string
let service: ServiceStandIn
beforeEach(async () => {
  home = await mkdtemp(path.join(os.tmpdir(), 'dropway-export-'))
  folder = path.join(home, 'site')
  service = await startServiceStandIn()
  service.exported = await zipOf({ 'secret/index.html': 'protected' })
  await mkdir(folder)
  await writeFile(path.join(folder, 'index.html'), 'x')
})
afterEach(async () => {
  await service.close()
  await rm(home, { recursive: true, force: true })
})

function zipOf(files: Readonly<Record<string, string | Buffer>>): Promise<Buffer> {
  const zip = new yazl.ZipFile()
  for (const [name, content] of Object.entries(files)) zip.addBuffer(Buffer.from(content), name, { compress: false })
  zip.end()
  return buffer(zip.outputStream as Readable)
}

const dropway = (line: string, options: Partial<InProcessOptions> = {}): Promise<CliResult> =>
  runInProcess(line.split(' '), {
    cwd: folder,
    ...options,
    env: { HOME: home, DROPWAY_URL: service.url, DROPWAY_TOKEN: 'dw_x' },
  })
const answering = (answer: string): Partial<InProcessOptions> => ({
  terminal: true,
  respond: (output) => (output.includes('[y/N]') ? Promise.resolve(`${answer}\n`) : undefined),
})
const entriesOf = (file: string): string =>
  execFileSync('python3', [
    '-c',
    'import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).namelist())',
    file,
  ]).toString()

test('goes to the home folder by default, for its owner alone, and is a whole archive', async () => {
  const { code, lines } = await dropway('export')
  const file = path.join(home, 'dropway-export.zip')
  expect([code, lines]).toEqual([0, [file]])
  expect(entriesOf(file)).toContain('secret/index.html')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await readdir(folder)).toEqual(['index.html'])
})

describe('is written only when asked', () => {
  test.each(['.dropway.json', '.git', 'package.json', 'index.md'])('into a project that has %s', async (mark) => {
    const other = path.join(home, 'other')
    await mkdir(path.join(other, 'deep'), { recursive: true })
    await writeFile(path.join(other, mark), '{}')
    const into = { cwd: path.join(other, 'deep') }
    expect((await dropway('export all.zip', into)).code).toBe(2)
    expect((await dropway('export all.zip', { ...into, ...answering('n') })).code).toBe(1)
    expect(await readdir(into.cwd)).toEqual([])
    expect((await dropway('export all.zip', { ...into, ...answering('y') })).code).toBe(0)
    expect(await readdir(into.cwd)).toEqual(['all.zip'])
  })

  test('over a file that is there', async () => {
    await dropway('export')
    await writeFile(path.join(home, 'dropway-export.zip'), 'kept')
    const piped = await dropway('export')
    expect([piped.code, piped.stderr]).toEqual([2, expect.stringContaining('--yes')])
    expect(await readFile(path.join(home, 'dropway-export.zip'), 'utf8')).toBe('kept')
    expect((await dropway('export --yes')).code).toBe(0)
    expect(entriesOf(path.join(home, 'dropway-export.zip'))).toContain('secret')
  })

  test('and never onto what is no ordinary file, --yes or not', async () => {
    const fifo = path.join(home, 'fifo')
    execFileSync('python3', ['-c', 'import os, sys; os.mkfifo(sys.argv[1])', fifo])
    await symlink(path.join(home, 'elsewhere'), path.join(home, 'link'))
    await mkdir(path.join(home, 'folder'))
    for (const name of ['fifo', 'link', 'folder', '/dev/null', '/dev/stdout']) {
      const { code, stderr } = await dropway(`export ${path.resolve(home, name)} --yes`)
      expect([name, code, stderr]).toEqual([name, 2, expect.stringContaining('no ordinary file')])
    }
    expect((await stat(fifo)).isFIFO()).toBe(true)
    expect(await readdir(home)).not.toContain('elsewhere')
  })
})

test('an archive that breaks off is not kept under any name', async () => {
  service.exported = service.exported.subarray(0, 40)
  const { code, stderr } = await dropway('export')
  expect([code, stderr]).toEqual([1, expect.stringContaining('no whole archive')])
  expect(await readdir(home)).toEqual(['site'])
})

describe('never goes up again', () => {
  test.each(['dropway-export.zip', 'all.zip', 'backup', 'picture.png', 'img/deep.bin'])('as %s', async (name) => {
    await mkdir(path.join(folder, 'img'))
    await dropway(`export ${name} --yes`)
    const { code, stderr } = await dropway('deploy --include **')
    expect([code, stderr]).toEqual([0, expect.stringContaining(`Left out: ${name}`)])
    expect(stderr).toContain('of 1 file')
  })

  test('when it is large: known by its end, before it counts as too much', async () => {
    service.exported = await zipOf({ 'secret/film.bin': Buffer.alloc(11_000_000) })
    service.uploadCapBytes = 10_000_000
    await dropway('export large.bin --yes')
    const { code, stderr } = await dropway('deploy')
    expect([code, stderr]).toEqual([0, expect.stringContaining('Left out: large.bin')])
  })

  test('by itself, from stdout, or by an earlier client under its usual name', async () => {
    await dropway('export all.zip --yes')
    const alone = await dropway('deploy all.zip')
    expect([alone.code, alone.stderr]).toEqual([1, expect.stringContaining('an export of your drops')])
    const { stdout } = await dropway('export -')
    expect(stdout).toContain('Dropway export')
    await rm(path.join(folder, 'all.zip'))
    await writeFile(path.join(folder, 'dropway-export.zip'), await zipOf({ 'secret/index.html': 'x' }))
    expect((await dropway('deploy')).stderr).toContain('Left out: dropway-export.zip')
    expect(service.published).toHaveLength(1)
  })

  test('by an assistant', async () => {
    await dropway('export all.zip --yes')
    const call = { name: 'service_publish', arguments: { local: 'all.zip' } }
    const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call })
    const { lines } = await dropway('mcp', { input: `${message}\n` })
    expect(JSON.parse(lines[0]!).result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('an export of all drops') }],
    })
  })

  test('other archives do', async () => {
    await writeFile(path.join(folder, 'download.zip'), await zipOf({ 'a.txt': 'x' }))
    expect((await dropway('deploy')).stderr).toContain('of 2 files')
  })
})
