/** Many callers at once: caps, version numbers and slugs hold under races; a publish is visible when its 201 arrives. */
import { createHash, randomBytes } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack

beforeAll(async () => {
  stack = await sharedStack()
})

const times = <Value>(count: number, make: (index: number) => Promise<Value>): Promise<Value[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)))

test('50 creates on a free account end in exactly 3 sites', async () => {
  const api = apiFor(stack, await stack.createAccount('free'))
  const answers = await times(50, () => api.create())
  expect(answers.filter((answer) => answer.status === 201)).toHaveLength(3)
  expect(
    new Set(
      answers.filter((answer) => answer.status !== 201).map((answer) => `${answer.status} ${answer.json().error}`),
    ),
  ).toEqual(new Set(['403 plan_limit']))
  expect((await api.list()).json()).toHaveLength(3)
})

test('50 uploads to one site get the numbers 1 to 50, without a gap', async () => {
  const api = apiFor(stack, await stack.createAccount('business'))
  const site = (await api.create()).json()
  const answers = await times(50, (index) => api.upload(site.id, fileForm('a.html', `upload ${index}`)))
  expect(answers.map((answer) => answer.json().version_number).toSorted((a, b) => a - b)).toEqual(
    Array.from({ length: 50 }, (_, index) => index + 1),
  )
  const [newest] = (await api.versions(site.id)).json()
  expect(newest).toMatchObject({ version_number: 50, live: true })
  expect((await stack.visit(site.slug)).header('dropway-version')).toBe('50')
})

test('an upload that is finished ten times at once is published once', async () => {
  const { token } = await stack.createAccount('plus')
  const api = apiFor(stack, { token })
  const site = (await api.create()).json()
  const page = Buffer.from('<p>once</p>')
  const sha256 = createHash('sha256').update(page).digest('hex')
  const root = `/api/v1/sites/${site.id}/uploads`
  const files = [{ path: 'index.html', sha256, size: page.length }]
  const { upload_id } = (await stack.fetch(root, { token, json: { files } })).json<{ upload_id: string }>()
  await stack.fetch(`${root}/${upload_id}/blobs/${sha256}`, { method: 'PUT', token, body: page })
  const answers = await times(10, () => stack.fetch(`${root}/${upload_id}/finish`, { method: 'POST', token }))
  expect(answers.map((answer) => answer.status).toSorted((a, b) => a - b)).toEqual([201, ...Array<number>(9).fill(404)])
  expect((await api.versions(site.id)).json()).toHaveLength(1)
  expect((await stack.visit(site.slug)).text()).toContain('once')
})

test.each([
  ['number', 20, 1000],
  ['bytes', 5, 10_000_000],
])('uploads under way are bounded by their %s: one more is refused, and ends no other', async (_, fitting, size) => {
  const { token } = await stack.createAccount('free')
  const site = (await apiFor(stack, { token }).create()).json()
  const root = `/api/v1/sites/${site.id}/uploads`
  const start = async () => {
    const sha256 = randomBytes(32).toString('hex')
    const answer = await stack.fetch(root, { token, json: { files: [{ path: 'index.html', sha256, size }] } })
    return { answer, blob: `${root}/${answer.json<{ upload_id: string }>().upload_id}/blobs/${sha256}` }
  }
  const started = await times(fitting, start)
  expect(started.map(({ answer }) => answer.status)).toEqual(Array<number>(fitting).fill(201))
  const { answer } = await start()
  expect([answer.status, answer.json().error]).toEqual([403, 'plan_limit'])
  for (const { blob } of started) expect((await stack.fetch(blob, { token })).status).not.toBe(404)
})

test('50 creates of one slug end in one 201', async () => {
  const accounts = await times(5, () => stack.createAccount('plus'))
  const slug = `race-${Date.now()}`
  const answers = await times(50, (index) => apiFor(stack, accounts[index % 5]!).create({ slug }))
  expect(answers.filter((answer) => answer.status === 201)).toHaveLength(1)
  expect(answers.filter((answer) => answer.status === 409 && answer.json().error === 'slug_taken')).toHaveLength(49)
})

test('the storage cap holds when many uploads arrive together', async () => {
  const api = apiFor(stack, await stack.createAccount('free'))
  const sites = await times(3, async () => (await api.create()).json())
  const answers = await times(9, (index) =>
    api.upload(sites[index % 3].id, fileForm('a.html', `${index}`.padEnd(8_000_000, 'x'))),
  )
  expect(answers.filter((answer) => answer.status === 201)).toHaveLength(6)
  expect(answers.filter((answer) => answer.status === 403 && answer.json().error === 'plan_limit')).toHaveLength(3)
})
