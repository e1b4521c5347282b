/** Which drop a deploy goes to, what it asks first, and what a refused one leaves behind. */
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runInProcess, type CliResult, type InProcessOptions } from '../../support/cli-in-process.ts'
import { startServiceStandIn, type ServiceStandIn, type Trouble } from '../../support/service-stand-in.ts'

let home: string
let folder: string
let service: ServiceStandIn
beforeEach(async () => {
  home = await mkdtemp(path.join(os.tmpdir(), 'dropway-deploy-'))
  folder = path.join(home, 'work', 'site')
  service = await startServiceStandIn()
  await write({ 'index.html': 'x' })
})
afterEach(async () => {
  await service.close()
  await rm(home, { recursive: true, force: true })
})

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
    await writeFile(path.join(folder, name), content)
  }
}

const dropway = (line: string, options: Partial<InProcessOptions> = {}): Promise<CliResult> =>
  runInProcess(line.split(' '), {
    cwd: folder,
    ...options,
    env: { HOME: home, DROPWAY_URL: service.url, DROPWAY_TOKEN: 'dw_x', ...options.env },
  })
const atTerminal = (line: string, answer: string): Promise<CliResult> =>
  dropway(line, {
    terminal: true,
    respond: (output) => (output.includes('[y/N]') ? Promise.resolve(`${answer}\n`) : undefined),
  })

describe('a cloned repository', () => {
  /** As a stranger may have committed it. */
  const commit = (content: object): Promise<void> =>
    write({ '.dropway.json': JSON.stringify({ service: service.url, ...content }) })

  test.each([
    ['the folder', (id: string) => ({ drop: { id, slug: 'mine' } }), 'deploy'],
    ['a page', (id: string) => ({ files: { 'index.html': { id, slug: 'mine' } } }), 'deploy index.html'],
  ])('that names a live drop for %s is not published there unasked', async (_, content, line) => {
    const { id } = service.add('mine', true)
    await commit(content(id))
    for (const env of [{}, { CI: 'true' }] as Record<string, string>[]) {
      const piped = await dropway(`${line} --json`, { env })
      expect([piped.code, piped.json().error]).toEqual([2, 'not_linked'])
      expect(piped.json().detail).toContain('--slug mine')
    }
    const no = await atTerminal(line, 'n')
    expect([no.code, no.stderr]).toEqual([1, expect.stringContaining('only its .dropway.json names that drop')])
    expect(service.published).toEqual([])
    expect((await atTerminal(line, 'y')).code).toBe(0)
    // The person has said so, once and for this folder.
    await write({ 'index.html': 'changed' })
    expect((await dropway(line)).code).toBe(0)
    expect(service.published).toEqual(['mine', 'mine'])
  })

  test('with `making` is a new drop: what it names stays untouched, live or not', async () => {
    service.add('mine', true)
    service.add('prepared', false)
    for (const slug of ['mine', 'prepared']) {
      await commit({ making: { '.': slug } })
      expect((await dropway('deploy')).code).toBe(0)
      await dropway('unlink')
    }
    expect(service.published).not.toContain('mine')
    expect(service.published).not.toContain('prepared')
    expect(service.published).toHaveLength(2)
  })

  test.each(['--yes', '--slug mine --yes'])('is published where the caller says %s', async (options) => {
    const { id } = service.add('mine', true)
    await commit({ drop: { id, slug: 'mine' } })
    expect((await dropway(`deploy ${options}`)).code).toBe(0)
    expect(service.published).toEqual(['mine'])
  })

  test('is published in CI where the script names the drop', async () => {
    const { id } = service.add('mine', true)
    await commit({ drop: { id, slug: 'mine' } })
    const { code, stderr } = await dropway('deploy --slug mine', { env: { CI: 'true' } })
    expect(code, stderr).toBe(0)
  })

  test.each([
    'rollback',
    'password clear',
    'settings --spa',
    'rename other',
    'domains add x.example',
    'domains remove x.example',
    'delete',
  ])('changes nothing by "dropway %s" either', async (line) => {
    const { id } = service.add('mine', true)
    await commit({ drop: { id, slug: 'mine' } })
    const { code, stderr } = await dropway(line)
    expect([code, stderr]).toEqual([2, expect.stringContaining('Name the drop with --drop mine')])
    expect(service.calls.filter((call) => !call.startsWith('GET '))).toEqual([])
  })

  test('may be looked at', async () => {
    const { id } = service.add('mine', true)
    await commit({ drop: { id, slug: 'mine' } })
    expect((await dropway('versions')).code).toBe(0)
  })

  test('that was moved is asked about again; another way to the same folder is not', async () => {
    await dropway('deploy --slug mine')
    await symlink(folder, path.join(home, 'shortcut'))
    expect((await dropway('deploy', { cwd: path.join(home, 'shortcut') })).code).toBe(0)
    const moved = path.join(home, 'moved')
    await mkdir(moved)
    for (const name of ['index.html', '.dropway.json'])
      await writeFile(path.join(moved, name), await readFile(path.join(folder, name)))
    expect((await dropway('deploy', { cwd: moved })).code).toBe(2)
  })
})

describe('a deploy that was cut short', () => {
  test.each([
    ['was lost', true],
    ['never came to be', false],
  ])('where the answer to making the drop %s: the next one goes on with that drop', async (_, after) => {
    service.trouble = (call) => (call === 'POST /sites' ? { kind: 'cut', after } : undefined)
    service.holds = (call) => call === 'GET /sites' && service.calls.includes('POST /sites')
    const broken = dropway('deploy')
    await expect.poll(() => service.calls.includes('POST /sites')).toBe(true)
    service.trouble = () => undefined
    service.letGo()
    await broken
    expect((await dropway('deploy --json')).json().slug).toBe(service.published[0])
    expect(service.sites.size).toBe(1)
    expect(new Set(service.published).size).toBe(1)
  })
})

describe('from a subfolder', () => {
  test('deploy publishes what the nearest .dropway.json upwards speaks of, and commands mean its drop', async () => {
    await dropway('deploy --slug mine')
    await write({ 'index.html': 'changed', 'a/b/index.html': 'not a site of its own' })
    const below = { cwd: path.join(folder, 'a', 'b') }
    const { code, stderr } = await dropway('deploy', below)
    expect([code, stderr], stderr).toEqual([0, expect.stringContaining('Sent 2 of 2 files')])
    expect(service.published).toEqual(['mine', 'mine'])
    expect(await readdir(below.cwd)).toEqual(['index.html'])
    expect((await dropway('settings --json', below)).json().slug).toBe('mine')
    expect((await dropway('unlink', below)).stdout).toContain('no longer linked to mine')
    expect(await readdir(folder)).not.toContain('.dropway.json')
  })

  test('a folder that is named is itself, and pages beside do not make a project', async () => {
    await write({ 'page.html': 'page', 'a/index.html': 'own' })
    await dropway('deploy page.html')
    const own = await dropway('deploy --json', { cwd: path.join(folder, 'a') })
    expect(own.json().version.file_count).toBe(1)
    await dropway('deploy --slug whole')
    expect((await dropway('deploy . --json', { cwd: path.join(folder, 'a') })).json().slug).toBe(own.json().slug)
  })
})

describe('a first deploy that is refused', () => {
  test.each([
    ['a folder', 'deploy'],
    ['a page', 'deploy index.html'],
  ])('leaves nothing behind: %s', async (_, line) => {
    service.uploadCapBytes = 0
    const { code } = await dropway(line)
    expect(code).toBe(5)
    expect(service.calls.filter((call) => call === 'POST /sites')).toEqual([])
    expect(await readdir(folder)).toEqual(['index.html'])
    const links = await readdir(path.join(home, '.config', 'dropway', 'links')).catch(() => [])
    expect(links).toEqual([])
  })

  test.each([
    ['a folder', 'deploy', '/finish'],
    ['a page', 'deploy index.html', '/upload'],
  ])('leaves nothing behind when the answer to taking the drop back is lost: %s', async (_, line, refused) => {
    let deletions = 0
    service.trouble = (call) => {
      if (call.endsWith(refused)) return { kind: 'answer', status: 400, error: 'missing_index' }
      return call.startsWith('DELETE ') && ++deletions === 1 ? { kind: 'cut', after: true } : undefined
    }
    const { code, stderr } = await dropway(line)
    expect([code, stderr]).toEqual([1, expect.stringMatching(/The new drop \S+ is taken back\./)])
    expect(deletions).toBe(2)
    expect(service.sites.size).toBe(0)
    expect(await readdir(folder)).toEqual(['index.html'])
  })

  test.each([
    ['a folder', 'deploy'],
    ['a film', 'deploy large.mp4'],
    ['a film, by --dry-run', 'deploy large.mp4 --dry-run'],
  ])('for its size is refused before it is read: %s', async (_, line) => {
    await write({ 'large.mp4': '' })
    // It has holes: reading a terabyte would take an hour.
    await truncate(path.join(folder, 'large.mp4'), 1e12)
    service.uploadCapBytes = 50_000_000
    const { code, stderr } = await dropway(line)
    expect([code, stderr]).toEqual([5, expect.stringContaining('larger than 50 MB')])
    expect(service.calls.filter((call) => call.startsWith('POST'))).toEqual([])
  })
})

describe('a page whose setting is refused', () => {
  const refuse = (call: string): Trouble | undefined =>
    call.startsWith('PATCH ') ? { kind: 'answer', status: 403, error: 'insufficient_scope' } : undefined

  test.each([
    ['a new drop, which stays', false, '--slug mine', 'is live at https://mine.example'],
    ['a live drop', true, '--slug mine --yes', 'is live at https://mine.example'],
    ['a preview', true, '--slug mine --yes --preview draft', 'is at https://draft--mine.example'],
  ])('is published, and the refusal says where and what to do: %s', async (_, isLive, options, place) => {
    if (isLive) service.add('mine', true)
    service.trouble = refuse
    const { code, stderr, stdout } = await dropway(`deploy index.html --spa ${options}`)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain(
      `Version 1 ${place}. Only --spa was not set: So it was asked for. Set it with "dropway settings --spa --drop mine".`,
    )
    expect(stderr).not.toContain('nothing in it')
    expect(service.calls.filter((call) => call.startsWith('DELETE '))).toEqual([])
    expect(service.published).toEqual(['mine'])
  })

  test('is told to programs with the code of the refusal', async () => {
    service.trouble = refuse
    const refused = await dropway('deploy index.html --spa --slug mine --json')
    expect([refused.code, refused.json().error]).toEqual([1, 'insufficient_scope'])
    expect(refused.json().detail).toContain('is live at https://mine.example')
  })
})

test.each(['nowhere', 'index.html'])('dropway mcp refuses %s, which is no folder', async (name) => {
  const { code, stdout, stderr } = await dropway(`mcp ${name}`)
  expect([code, stdout, stderr]).toEqual([2, '', `"${name}" is not a folder.\n`])
})

test('what a client left that was killed while it wrote .dropway.json is removed; one that still writes is not published', async () => {
  // No process has this number: it is beyond what any system hands out.
  await write({
    '.dropway.json.4194999999': '{}',
    '.dropway.json.notes': '{}',
    [`.dropway.json.${process.ppid}`]: '{}',
  })
  const { code, stderr } = await dropway('deploy')
  expect([code, stderr]).toEqual([0, expect.stringContaining('of 2 files')])
  expect((await readdir(folder)).toSorted()).toEqual(
    ['.dropway.json', `.dropway.json.${process.ppid}`, '.dropway.json.notes', 'index.html'].toSorted(),
  )
})
