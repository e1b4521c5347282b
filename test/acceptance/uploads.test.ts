/** Changed files only: several small files in one request, going on after an interruption, and asking before. */
import { createHash, randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { apiFor } from '../support/api.ts'
import { refusal, type Answer } from '../support/client.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let owner: Account

beforeAll(async () => {
  stack = await sharedStack()
  owner = await stack.createAccount('plus')
})

interface Upload {
  readonly site: { id: string; slug: string }
  readonly root: string
  readonly missing: string[]
}

const hashOf = (content: string): string => createHash('sha256').update(content).digest('hex')
const listOf = (files: Readonly<Record<string, string>>) =>
  Object.entries(files).map(([path, content]) => ({ path, sha256: hashOf(content), size: Buffer.byteLength(content) }))
/** No one has stored it before. */
const fresh = (text: string): string => `${text} ${randomBytes(8).toString('hex')}`

async function start(files: Readonly<Record<string, string>>): Promise<Upload> {
  const { token } = owner
  const site = (await apiFor(stack, owner).create()).json()
  const root = `/api/v1/sites/${site.id}/uploads`
  const { upload_id, missing } = (await stack.fetch(root, { token, json: { files: listOf(files) } })).json()
  return { site, missing, root: `${root}/${upload_id}` }
}

function sendSeveral({ root }: Upload, contents: readonly string[], nameOf = hashOf): Promise<Answer> {
  const body = new FormData()
  for (const content of contents) body.append(nameOf(content), new File([content], 'x'))
  return stack.fetch(`${root}/blobs`, { token: owner.token, body })
}

describe('several files in one request', () => {
  test('are stored, each once; the rest is missing; then the whole is published', async () => {
    const files = { 'index.html': fresh('page'), 'a.css': fresh('a'), 'copy.css': '', 'b.txt': fresh('b') }
    const upload = await start(files)
    expect(upload.missing).toHaveLength(4)
    const first = [files['index.html'], files['a.css']]
    expect((await sendSeveral(upload, first)).json().stored.toSorted()).toEqual(first.map(hashOf).toSorted())
    const { missing, arrived } = (await stack.fetch(upload.root, { token: owner.token })).json()
    expect([missing.toSorted(), arrived]).toEqual([[files['b.txt'], ''].map(hashOf).toSorted(), {}])
    // Sending a batch again, as after a lost answer, is no mistake.
    expect((await sendSeveral(upload, Object.values(files))).status).toBe(200)
    const done = await stack.fetch(`${upload.root}/finish`, { token: owner.token, method: 'POST' })
    expect([done.status, done.json().file_count]).toEqual([201, 4])
    expect((await stack.visit(upload.site.slug, '/b.txt')).text()).toBe(files['b.txt'])
  })

  test('a wrong or unknown one is refused; those before it are kept', async () => {
    const files = { 'index.html': fresh('page'), 'a.txt': fresh('a') }
    const upload = await start(files)
    const wrong = await sendSeveral(upload, [files['index.html'], fresh('forged')], (content) =>
      content === files['index.html'] ? hashOf(content) : hashOf(files['a.txt']),
    )
    expect(refusal(wrong)).toBe('400 invalid_request')
    expect(refusal(await sendSeveral(upload, ['never announced']))).toBe('404 not_found')
    const { missing } = (await stack.fetch(upload.root, { token: owner.token })).json()
    expect(missing).toEqual([hashOf(files['a.txt'])])
  })

  test('a large one comes alone, and tells how much of it has arrived', async () => {
    const large = fresh('x'.repeat(300_000))
    const upload = await start({ 'index.html': 'x', 'large.txt': large })
    expect(refusal(await sendSeveral(upload, [large]))).toBe('400 invalid_request')
    const half = await stack.fetch(`${upload.root}/blobs/${hashOf(large)}`, {
      method: 'PUT',
      token: owner.token,
      body: Buffer.from(large.slice(0, 200_000)),
    })
    expect(refusal(half)).toBe('400 invalid_request')
    const { arrived } = (await stack.fetch(upload.root, { token: owner.token })).json()
    expect(arrived).toEqual({ [hashOf(large)]: 200_000 })
  })

  test("someone else's upload does not exist", async () => {
    const upload = await start({ 'index.html': fresh('mine') })
    const { token } = await stack.createAccount('free')
    expect((await stack.fetch(upload.root, { token })).status).toBe(404)
    const body = new FormData()
    body.append(upload.missing[0]!, new File(['x'], 'x'))
    expect((await stack.fetch(`${upload.root}/blobs`, { token, body })).status).toBe(404)
  })
})

test('of a drop of thousands of files one is changed and one removed; going back brings both', async () => {
  const { token } = owner
  const [page, text, changed] = [fresh('page'), fresh('text'), fresh('changed')]
  const names = Array.from({ length: 2100 }, (_, index) => `texts/${index}.txt`)
  const files: Record<string, string> = Object.fromEntries(names.map((name) => [name, text]))
  const upload = await start({ 'index.html': page, ...files })
  await sendSeveral(upload, [page, text])
  const finish = (root: string) => stack.fetch(`${root}/finish`, { token, method: 'POST' })
  const first = (await finish(upload.root)).json()
  expect(first.file_count).toBe(2101)
  const read = async (path: string) => (await stack.visit(upload.site.slug, path)).text()
  expect([await read('/'), await read('/texts/0.txt'), await read('/texts/2099.txt')]).toEqual([page, text, text])

  const root = `/api/v1/sites/${upload.site.id}/uploads`
  const next: Record<string, string> = { 'index.html': page, ...files, 'texts/1000.txt': changed }
  const { 'texts/1500.txt': removed, ...rest } = next
  const begun = (await stack.fetch(root, { token, json: { files: listOf(rest) } })).json()
  expect(begun.missing).toEqual([hashOf(changed)])
  await sendSeveral({ ...upload, root: `${root}/${begun.upload_id}` }, [changed])
  const second = (await finish(`${root}/${begun.upload_id}`)).json()
  expect([second.file_count, second.report.kept.files]).toEqual([2100, 1])
  expect(await read('/texts/1000.txt')).toBe(changed)
  expect(await read('/texts/1001.txt')).toBe(text)
  // A tab of the first version still finds it.
  expect(await read('/texts/1500.txt')).toBe(removed)

  const promote = `/api/v1/sites/${upload.site.id}/versions/${first.version_id}/promote`
  expect((await stack.fetch(promote, { token, method: 'POST' })).status).toBe(200)
  expect([await read('/texts/1000.txt'), await read('/texts/1500.txt')]).toEqual([text, removed])
})

test('an upload to a preview is compared with what that preview shows', async () => {
  const files = { 'index.html': fresh('page') }
  const site = await stack.publish(owner, files)
  const { token } = owner
  const root = `/api/v1/sites/${site.id}/uploads`
  const begin = async () =>
    (await stack.fetch(root, { token, json: { files: listOf(files), preview: 'draft' } })).json()
  const first = await begin()
  expect(first.unchanged).toBe(false)
  expect((await stack.fetch(`${root}/${first.upload_id}/finish`, { token, method: 'POST' })).status).toBe(201)
  expect((await begin()).unchanged).toBe(true)
})

describe('asking before', () => {
  const check = (json: unknown, token = owner.token): Promise<Answer> =>
    stack.fetch('/api/v1/sites/check', { token, json })

  test('tells what would change, and changes nothing', async () => {
    const before = { 'index.html': fresh('one'), 'same.txt': fresh('same'), 'gone.txt': fresh('gone') }
    const site = await stack.publish(owner, before)
    const after = { 'index.html': fresh('two'), 'same.txt': before['same.txt'], 'new.txt': fresh('new') }
    const expected = { added: ['new.txt'], changed: ['index.html'], removed: ['gone.txt'], unchanged: false }
    for (const named of [{ slug: site.slug }, { site_id: site.id }]) {
      const answer = (await check({ ...named, files: listOf(after) })).json()
      expect(answer).toMatchObject({ ...expected, site: { id: site.id }, missing: { file_count: 2 } })
    }
    expect((await check({ slug: site.slug, files: listOf(before) })).json()).toMatchObject({ unchanged: true })
    expect((await apiFor(stack, owner).versions(site.id)).json()).toHaveLength(1)
  })

  test('a preview that is not there yet is compared with what is live, and one too many is refused', async () => {
    const files = { 'index.html': fresh('page'), 'gone.txt': fresh('gone') }
    const free = await stack.createAccount('free')
    const { token } = free
    const site = await stack.publish(free, files)
    const wanted = { site_id: site.id, files: listOf({ 'index.html': files['index.html'] }) }
    const ahead = { added: [], changed: [], removed: ['gone.txt'] }
    expect((await check({ ...wanted, preview: 'one' }, token)).json()).toMatchObject({
      ...ahead,
      unchanged: false,
      compared_with: 'live',
    })
    const root = `/api/v1/sites/${site.id}/uploads`
    const start = (preview: string) => stack.fetch(root, { token, json: { files: wanted.files, preview } })
    const { upload_id } = (await start('one')).json()
    expect((await stack.fetch(`${root}/${upload_id}/finish`, { token, method: 'POST' })).status).toBe(201)
    expect((await check({ ...wanted, preview: 'one' }, token)).json()).toMatchObject({
      ...{ ...ahead, removed: [] },
      unchanged: true,
      compared_with: 'preview',
    })
    for (const refused of [await check({ ...wanted, preview: 'two' }, token), await start('two')])
      expect(refusal(refused)).toBe('403 plan_limit')
  })

  test('a new drop is not made', async () => {
    const slug = `new-${randomBytes(5).toString('hex')}`
    const files = listOf({ 'index.html': fresh('x') })
    expect((await check({ slug, files })).json()).toMatchObject({ site: null, added: ['index.html'] })
    expect((await apiFor(stack, owner).list()).json().map((site: { slug: string }) => site.slug)).not.toContain(slug)
    expect((await apiFor(stack, owner).create({ slug })).status).toBe(201)
  })

  test('refuses what publishing would refuse', async () => {
    const index = listOf({ 'index.html': 'x' })
    const theirs = await stack.publish(owner, 'theirs')
    const { token } = await stack.createAccount('free')
    const refused: [Record<string, unknown>, string][] = [
      [{ slug: theirs.slug, files: index }, '409 slug_taken'],
      [{ slug: 'www', files: index }, '409 slug_reserved'],
      [{ slug: 'No', files: index }, '400 invalid_request'],
      [{ site_id: theirs.id, files: index }, '404 not_found'],
      [{ files: listOf({ 'a.html': 'x' }) }, '400 missing_index'],
      [{ files: [...index, { path: '../up', sha256: hashOf('x'), size: 1 }] }, '400 invalid_request'],
      [{ files: [{ ...index[0], size: 10_000_001 }] }, '413 upload_too_large'],
    ]
    for (const [json, expected] of refused) expect(refusal(await check(json, token)), expected).toBe(expected)
  })
})
