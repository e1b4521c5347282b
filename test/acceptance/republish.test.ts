/** Tabs that were opened before a publish find what their version had; what ends that, and what never stays. */
import { beforeAll, describe, expect, test } from 'vitest'
import { apiFor, bundleForm } from '../support/api.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let account: Account

beforeAll(async () => {
  stack = await sharedStack()
  account = await stack.createAccount('business')
})

type Files = Readonly<Record<string, string>>

async function newDrop(files: Files) {
  const api = apiFor(stack, account)
  const site = (await api.create()).json() as { id: string; slug: string }
  const publish = async (next: Files, fields: Readonly<Record<string, string>> = {}) => {
    const form = bundleForm(next)
    for (const [name, value] of Object.entries(fields)) form.append(name, value)
    const answer = await stack.fetch(`/api/v1/sites/${site.id}/upload-bundle`, { token: account.token, body: form })
    expect(answer.status, answer.text()).toBe(201)
    return answer.json()
  }
  const look = async (path: string) => {
    const answer = await stack.visit(site.slug, path)
    return answer.status === 200 ? answer.text() : answer.status
  }
  const patch = (body: object) =>
    stack.fetch(`/api/v1/sites/${site.id}`, {
      method: 'PATCH',
      token: account.token,
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    })
  const read = async () => (await stack.fetch(`/api/v1/sites/${site.id}`, { token: account.token })).json()
  await publish(files)
  return { ...site, publish, look, patch, read }
}

const FIRST = {
  'index.html': '<script src="/assets/app-a1.js"></script>',
  'about.html': 'about',
  'assets/app-a1.js': 'first',
  'assets/style-a1.css': 'a{}',
  'notes.txt': 'notes',
  _headers: '/assets/*\n  cache-control: max-age=77\n',
}
const SECOND = { 'index.html': '<script src="/assets/app-b2.js"></script>', 'assets/app-b2.js': 'second' }

test('what a former version had stays with its own caching, pages do not', async () => {
  const drop = await newDrop(FIRST)
  const version = await drop.publish(SECOND)
  expect(version.report.kept).toMatchObject({ files: 3, bytes: 13 })
  const days = (Date.parse(version.report.kept.until) - Date.now()) / 86_400_000
  expect(Math.round(days)).toBe(30)
  const old = await stack.visit(drop.slug, '/assets/app-a1.js')
  expect([old.status, old.text(), old.header('cache-control')]).toEqual([200, 'first', 'max-age=77'])
  expect(await drop.look('/assets/app-b2.js')).toBe('second')
  expect(await drop.look('/notes.txt')).toBe('notes')
  expect(await drop.look('/about')).toBe(404)
  expect(await drop.look('/_headers')).toBe(404)
  expect(version).toMatchObject({ file_count: 2 })
  expect(await drop.read()).toMatchObject({ kept: version.report.kept, keep_old_files_days: null })
})

test('going back keeps the files of the version that was left', async () => {
  const drop = await newDrop(FIRST)
  await drop.publish(SECOND)
  const [, first] = (await stack.fetch(`/api/v1/sites/${drop.id}/versions`, { token: account.token })).json()
  const path = `/api/v1/sites/${drop.id}/versions/${first.version_id}/promote`
  expect((await stack.fetch(path, { method: 'POST', token: account.token })).status).toBe(200)
  expect(await drop.look('/assets/app-a1.js')).toBe('first')
  expect(await drop.look('/assets/app-b2.js')).toBe('second')
})

test('renaming keeps what was kept, at the new address', async () => {
  const drop = await newDrop(FIRST)
  await drop.publish(SECOND)
  const slug = `${drop.slug}-new`
  expect((await drop.patch({ slug })).status).toBe(200)
  const old = await stack.visit(slug, '/assets/app-a1.js')
  expect([old.status, old.text()]).toEqual([200, 'first'])
})

test('kept files are no part of a version’s size, its files or the export', async () => {
  const own = await stack.createAccount('plus')
  const api = apiFor(stack, own)
  const site = (await api.create()).json<{ id: string; slug: string }>()
  for (const files of [FIRST, SECOND]) expect((await api.uploadBundle(site.id, bundleForm(files))).status).toBe(201)
  const [second] = (await stack.fetch(`/api/v1/sites/${site.id}/versions`, { token: own.token })).json()
  const bytes = Object.values(SECOND).reduce((sum, text) => sum + text.length, 0)
  expect(second).toMatchObject({ file_count: 2, byte_size: bytes })
  const archive = await stack.fetch('/api/v1/sites/export', { token: own.token })
  const names = archive.body.toString('latin1')
  expect([names.includes('app-b2.js'), names.includes('style-a1.css')]).toEqual([true, false])
})

describe('what ends it', () => {
  const OLD = '/assets/app-a1.js'
  async function twice() {
    const drop = await newDrop(FIRST)
    await drop.publish(SECOND)
    expect(await drop.look(OLD)).toBe('first')
    return drop
  }

  test.each(['true', 'all'])('a publish with purge=%s, which takes older versions with it', async (purge) => {
    const drop = await twice()
    const before = (await stack.fetch(`/api/v1/sites/${drop.id}/versions`, { token: account.token })).json()
    const first = before.at(-1)
    expect((await stack.fetch(first.preview_url)).status).toBe(200)
    const version = await drop.publish({ 'index.html': 'third' }, { purge })
    expect(version.report.kept).toEqual({ files: 0, bytes: 0, until: null })
    expect(await drop.look(OLD)).toBe(404)
    expect(await drop.look('/assets/app-b2.js')).toBe(404)
    const list = (await stack.fetch(`/api/v1/sites/${drop.id}/versions`, { token: account.token })).json()
    expect(list.map((each: { version_number: number }) => each.version_number)).toEqual([3])
    const promote = `/api/v1/sites/${drop.id}/versions/${first.version_id}/promote`
    expect((await stack.fetch(promote, { method: 'POST', token: account.token })).status).toBe(404)
    expect((await stack.fetch(first.preview_url)).status).toBe(404)
  })

  test('a password; it does not come back without one', async () => {
    const drop = await twice()
    expect((await drop.patch({ password: 'sesame open' })).status).toBe(200)
    expect(await drop.look(OLD)).toBe(401)
    expect((await drop.patch({ password: null })).status).toBe(200)
    expect(await drop.look(OLD)).toBe(404)
    expect(await drop.look('/assets/app-b2.js')).toBe('second')
  })

  test('a takedown; it does not come back when the drop is restored', async () => {
    const drop = await twice()
    await stack.operate('takedown', drop.slug, '--reason', 'test')
    expect(await drop.look(OLD)).toBe(410)
    await stack.operate('restore', drop.slug)
    expect(await drop.look(OLD)).toBe(404)
    expect(await drop.look('/assets/app-b2.js')).toBe('second')
  })

  test('zero days, at once and whatever is retained; it does not come back', async () => {
    const drop = await twice()
    expect((await drop.patch({ keep_old_files_days: 0 })).json()).toMatchObject({
      keep_old_files_days: 0,
      kept: { files: 0 },
    })
    expect(await drop.look(OLD)).toBe(404)
    await drop.patch({ keep_old_files_days: null })
    expect(await drop.look(OLD)).toBe(404)
  })

  test('a live file, a redirect: both win; deleting ends all', async () => {
    const drop = await twice()
    await drop.publish({ 'index.html': 'x', 'assets/app-a1.js': 'new', _redirects: '/notes.txt /elsewhere 302\n' })
    expect(await drop.look(OLD)).toBe('new')
    expect(await drop.look('/notes.txt')).toBe(302)
    expect(await drop.look('/assets/style-a1.css')).toBe('a{}')
    await stack.fetch(`/api/v1/sites/${drop.id}`, { method: 'DELETE', token: account.token })
    expect(await drop.look('/assets/style-a1.css')).toBe(410)
  })
})

test.each([-1, 366, 1.5, 'x'])('keep_old_files_days: %s is refused', async (days) => {
  const drop = await newDrop(SECOND)
  expect((await drop.patch({ keep_old_files_days: days })).status).toBe(400)
})

test('storage counts what is kept once, and only beyond what versions store', async () => {
  const own = await stack.createAccount('free')
  const api = apiFor(stack, own)
  const site = (await api.create()).json()
  const used = async () => (await stack.fetch('/api/v1/usage', { token: own.token })).json().storage_bytes.used
  const publish = async (number: number) => {
    const form = bundleForm({ 'index.html': 'x', [`chunk-${number}.js`]: 'c'.repeat(1000) + number })
    return (await stack.fetch(`/api/v1/sites/${site.id}/upload-bundle`, { token: own.token, body: form })).json()
  }
  for (const number of [1, 2, 3]) await publish(number)
  expect(await used()).toBe(3 * 1002)
  // The free plan retains three versions: the chunk of the first is stored for open tabs alone.
  await publish(4)
  expect(await used()).toBe(3 * 1002 + 1001)
})

test('code that changed under the same name is told', async () => {
  const drop = await newDrop({ 'index.html': 'x', 'app.js': 'one' })
  const version = await drop.publish({ 'index.html': 'x', 'app.js': 'two' })
  expect(version.report.warnings).toContainEqual(expect.objectContaining({ code: 'unhashed_asset', path: 'app.js' }))
})
