/** What the review page is made of, as programs see it: the frame, the stream of versions, and that nobody else gets any of it. */
import { randomBytes } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { listenTo } from '../support/event-stream.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'
import { viewerMail, viewerMails } from '../support/viewer-mail.ts'

let stack: Stack
let owner: Account
let api: ReturnType<typeof apiFor>
let nextSlug = 0

beforeAll(async () => {
  stack = await sharedStack()
  owner = await stack.createAccount('business')
  api = apiFor(stack, owner)
})

const HELPER = 'startReview('
const page = (text: string): string =>
  `<!doctype html><meta http-equiv="content-security-policy" content="script-src 'self'"><title>${text}</title><p>${text}</p>`

interface Drop {
  readonly id: string
  readonly slug: string
}

async function newDrop(fields: Record<string, string> = {}): Promise<Drop> {
  const slug = `frame-${process.pid}-${nextSlug++}`
  const { id } = (await api.create({ slug })).json<{ id: string }>()
  await publish({ id, slug }, 'one', fields)
  return { id, slug }
}
async function publish(drop: Drop, text: string, fields: Record<string, string> = {}): Promise<void> {
  const answer = await api.upload(drop.id, fileForm('page.html', page(text), fields))
  expect(answer.status, answer.text()).toBe(201)
}

/** Comes in by a link that lets its holder comment, as a browser without scripts. */
async function guestOf(drop: Drop): Promise<{ browser: FormBrowser; shell: string; token: string; linkId: string }> {
  const made = await stack.fetch(`/api/v1/sites/${drop.id}/guest-links`, {
    token: owner.token,
    json: { role: 'comment' },
  })
  const { id: linkId, url } = made.json<{ id: string; url: string }>()
  const browser = new FormBrowser(stack, '198.51.100.77')
  const door = await browser.open(new URL(url).pathname)
  expect(door.text()).toContain('Your name')
  await browser.send(new URL(url).pathname, { name: 'Ada' })
  const shell = await browser.open(`/review/${drop.slug}`)
  expect(shell.status, shell.text().slice(0, 300)).toBe(200)
  return { browser, shell: shell.text(), token: url.split('/').at(-1)!, linkId }
}

const srcOf = (shell: string): URL => new URL(/<iframe[^>]* src="([^"]+)"/.exec(shell)![1]!.replaceAll('&amp;', '&'))

test('the frame shows a private drop with the helper; the same address without the seal shows nothing of either', async () => {
  const drop = await newDrop({ access_mode: 'viewers' })
  const { shell, linkId } = await guestOf(drop)
  const src = srcOf(shell)
  const framed = await stack.visit(drop.slug, src.pathname + src.search)
  expect(framed.status).toBe(200)
  expect(framed.text()).toContain('<p>one</p>')
  expect(framed.text()).toContain(HELPER)
  expect(framed.text()).toMatch(/script-src [^"]*sha256-/)
  expect(framed.header('cache-control')).toBe('private, no-store')
  const [cookie = ''] = framed.cookies.filter((each) => each.startsWith('__Host-dropway-frame='))
  const visit = (headers: Record<string, string>) => stack.visit(drop.slug, '/', { headers })
  expect((await visit({ cookie })).status).toBe(200)
  expect((await visit({ cookie })).text()).not.toContain(HELPER)
  expect((await visit({ cookie, 'sec-fetch-dest': 'iframe' })).text()).toContain(HELPER)
  const stranger = await visit({ 'sec-fetch-dest': 'iframe' })
  expect(stranger.status).toBe(401)
  expect(stranger.text()).not.toContain('<p>one</p>')
  const forged = await stack.visit(drop.slug, `${src.pathname}${src.search.slice(0, -4)}AAAA`)
  expect(forged.status).toBe(401)
  await stack.fetch(`/api/v1/sites/${drop.id}/guest-links/${linkId}`, { token: owner.token, method: 'DELETE' })
  expect((await visit({ cookie })).status).toBe(401)
  expect((await stack.visit(drop.slug, src.pathname + src.search)).status).toBe(401)
})

test.each<Record<string, string>>([{}, { access_mode: 'viewers' }, { password: 'open sesame' }])(
  'strangers are told nothing of a drop at its review page: %o',
  async (access) => {
    const drop = await newDrop(access)
    await publish(drop, 'Takeover of Initech', access)
    const shell = await stack.fetch(`/review/${drop.slug}`)
    expect(shell.status).toBe(401)
    expect(shell.text()).not.toContain('Initech')
  },
)

test('a public page carries nothing of it, and its own headers hold but for the frame of the review page', async () => {
  const drop = await newDrop()
  const form = new FormData()
  form.append('files', new File([page('one')], 'index.html'))
  form.append('paths', 'index.html')
  form.append(
    'files',
    new File(
      ["/*\n  X-Frame-Options: DENY\n  Content-Security-Policy: frame-ancestors 'none'; img-src 'self'\n"],
      '_headers',
    ),
  )
  form.append('paths', '_headers')
  expect((await api.uploadBundle(drop.id, form)).status).toBe(201)
  const open = await stack.visit(drop.slug)
  expect(open.text()).not.toContain('dropway-review')
  expect(open.text()).not.toContain(HELPER)
  expect(open.header('content-security-policy')).toContain("frame-ancestors 'none'")
  const src = srcOf((await guestOf(drop)).shell)
  const framed = await stack.visit(drop.slug, src.pathname + src.search)
  expect(framed.text()).toContain(HELPER)
  expect(framed.header('x-frame-options')).toBeUndefined()
  expect(framed.header('content-security-policy')).toContain(`frame-ancestors ${stack.baseUrl}`)
  expect(framed.header('content-security-policy')).toContain("img-src 'self'")
})

const listen = (path: string, headers: Record<string, string>) => listenTo(stack, path, headers)
test.each(['viewers', 'public'])(
  'a commenting viewer of a %s drop comes in with a mailed code, without an account; who is not on the list does not',
  async (access_mode) => {
    const drop = await newDrop({ access_mode })
    const path = `/review/${drop.slug}`
    const listed = `viewer-${randomBytes(5).toString('hex')}@example.test`
    const viewers = { viewers: [{ email: listed }], role: 'comment', invite: false }
    await stack.fetch(`/api/v1/sites/${drop.id}/viewers`, { token: owner.token, json: viewers })
    const browser = new FormBrowser(stack, '198.51.100.78')
    expect((await browser.send(path, { email: listed }, `${path}/code`)).status).toBe(303)
    const { code = '' } = await viewerMail(stack, listed)
    const asked = `${path}?email=${encodeURIComponent(listed)}`
    const wrong = code === '000000' ? '000001' : '000000'
    const refused = await browser.send(asked, { email: listed, code: wrong, name: 'Grace' }, `${path}/enter`)
    expect(refused.status).toBeGreaterThanOrEqual(400)
    expect((await browser.open(path)).status).toBe(401)
    const entered = await browser.send(asked, { email: listed, code, name: 'Grace' }, `${path}/enter`)
    expect(entered.status, entered.text().slice(0, 300)).toBe(303)
    const shell = await browser.open(path)
    expect(shell.status).toBe(200)
    expect(shell.text()).toContain('You write as Grace.')
    expect(shell.text()).not.toContain(listed)
    expect((await browser.send(path, { body: 'Said by a viewer.' }, `${path}/notes`)).status).toBe(303)
    expect((await browser.open(path)).text()).toContain('Said by a viewer.')
    // The same page and the same words for who is not on the list; no mail goes out.
    const stranger = new FormBrowser(stack, '198.51.100.79')
    const unlisted = `x${listed}`
    expect((await stranger.send(path, { email: unlisted }, `${path}/code`)).status).toBe(303)
    expect((await stranger.send(path, { email: listed }, `${path}/code`)).status).toBe(303)
    await viewerMail(stack, listed, 2)
    expect(viewerMails(stack, unlisted)).toEqual([])
  },
)

test('the stream tells the number of the version, resumes, and ends with the right to see it', async () => {
  const drop = await newDrop({ access_mode: 'viewers' })
  const { browser, token, linkId } = await guestOf(drop)
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const path = `/review/${drop.slug}/events`
  const credentials: Record<string, string>[] = [
    { cookie },
    { 'dropway-guest': token },
    { authorization: `Bearer ${owner.token}` },
  ]
  for (const headers of credentials) {
    const events = await listen(path, headers)
    expect(events.status).toBe(200)
    expect(await events.until('id: 1\n')).toMatch(/retry: \d+\n/)
    events.close()
  }
  expect((await listen(path, {})).status).toBe(401)
  const other = await stack.createAccount('free')
  expect((await listen(path, { authorization: `Bearer ${other.token}` })).status).toBe(401)
  const events = await listen(path, { cookie, 'last-event-id': '1' })
  await events.until(': resumed')
  await publish(drop, 'two')
  expect(await events.until('id: 2\n')).not.toContain('id: 1\n')
  await publish(drop, 'three', { preview: 'pr-1' })
  const preview = await listen(`${path}?preview=pr-1`, { cookie })
  await preview.until('id: 3\n')
  await publish(drop, 'four', { preview: 'pr-1' })
  await preview.until('id: 4\n')
  preview.close()
  await stack.fetch(`/api/v1/sites/${drop.id}/guest-links/${linkId}`, { token: owner.token, method: 'DELETE' })
  expect((await listen(path, { cookie })).status).toBe(401)
  await events.ended
})

test('a preview that a member has open reloads by itself; for who only has its address nothing is added', async () => {
  const drop = await newDrop()
  await publish(drop, 'draft', { preview: 'pr-7' })
  const host = `pr-7--${drop.slug}`
  expect((await stack.visit(host)).text()).not.toContain('followPreview')
  expect((await stack.visit(host, '/.dropway/events')).status).toBe(404)
})

test('who was let in to a preview hears of its versions at its own host, over HTTP/1.1 too; others do not', async () => {
  const drop = await newDrop({ access_mode: 'viewers' })
  await publish(drop, 'draft', { preview: 'pr-8' })
  const { browser } = await guestOf(drop)
  const src = srcOf((await browser.open(`/review/${drop.slug}?preview=pr-8`)).text())
  const framed = await stack.visit(`pr-8--${drop.slug}`, src.pathname + src.search)
  const cookie = framed.cookies.find((each) => each.startsWith('__Host-dropway-frame='))!.split(';')[0]!
  const events = await listenTo(stack, '/.dropway/events', { cookie }, src.hostname)
  expect(events.status).toBe(200)
  await events.until('id: 2\n')
  await publish(drop, 'again', { preview: 'pr-8' })
  await events.until('id: 3\n')
  events.close()
  const [stranger, public_] = [
    await listenTo(stack, '/.dropway/events', {}, src.hostname),
    await listenTo(stack, '/.dropway/events', { cookie }, src.hostname.replace('pr-8--', '')),
  ]
  expect([stranger.status, public_.status]).toEqual([401, 404])
  stranger.close()
  public_.close()
})

test('what someone says is told to those who review at once, and to nobody at the drop', async () => {
  const drop = await newDrop()
  const { token } = await guestOf(drop)
  const events = await listen(`/review/${drop.slug}/events`, { 'dropway-guest': token })
  await events.until('id: 1\n')
  const said = { page: '/', body: 'A word is missing.' }
  const threads = `/api/v1/sites/${drop.id}/threads`
  const { id } = (await stack.fetch(threads, { token: owner.token, json: said })).json<{ id: string }>()
  await events.until('event: threads\n')
  const resolved = await stack.fetch(`${threads}/${id}`, {
    token: owner.token,
    method: 'PATCH',
    json: { state: 'resolved' },
  })
  expect(resolved.status).toBe(200)
  await events.until('event: threads\n', 2)
  events.close()
})
