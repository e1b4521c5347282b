/** Who may see a drop: named viewers, guest links, machines; and who may not any more. */
import { beforeAll, expect, test } from 'vitest'
import { nextAddress } from '../support/addresses.ts'
import { apiFor, fileForm } from '../support/api.ts'
import { refusal, type Answer } from '../support/client.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { mailedLink } from '../support/mailbox.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'
import { viewerMail, viewerMails } from '../support/viewer-mail.ts'

let stack: Stack
let owner: Account
let api: ReturnType<typeof apiFor>

beforeAll(async () => {
  stack = await sharedStack()
  owner = await stack.createAccount('plus')
  api = apiFor(stack, owner)
})

const SECRET = 'the secret of the plan'
let nextSlug = 0

interface Shared {
  readonly id: string
  readonly slug: string
  readonly url: string
  readonly path: string
}

/** A drop that only its viewers see, published so from its first byte. */
async function sharedDrop(fields: Record<string, string> = { access_mode: 'viewers' }): Promise<Shared> {
  const slug = `plan-${process.pid}-${nextSlug++}`
  const site = (await api.create({ slug })).json<Shared>()
  const answer = await api.upload(site.id, fileForm('page.html', `<title>Plan</title><p>${SECRET}</p>`, fields))
  expect(answer.status, answer.text()).toBe(201)
  return { ...site, path: `/api/v1/sites/${site.id}`, ...answer.json<object>() } as Shared
}

const share = (drop: Shared, json: unknown) => stack.fetch(`${drop.path}/viewers`, { token: owner.token, json })
const visit = (drop: Shared, target = '/', headers: Record<string, string> = {}, method = 'GET') =>
  stack.visit(drop.slug, target, { headers, method })
const send = (drop: Shared, target: string, form: Record<string, string>, from = nextAddress()) =>
  stack.visit(drop.slug, target, {
    method: 'POST',
    from,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  })
const cookieOf = (answer: Answer): string => {
  expect(answer.status, answer.text()).toBe(303)
  return answer.cookies.find((cookie) => cookie.startsWith('__Host-dropway-viewer='))!
}
const pathOf = (link: string): string => new URL(link).pathname + new URL(link).search

async function comeIn(drop: Shared, email: string): Promise<string> {
  const before = viewerMails(stack, email).length
  await send(drop, '/.dropway/visit', { do: 'code', email, next: '/' })
  const { code = '' } = await viewerMail(stack, email, before + 1)
  return cookieOf(await send(drop, '/.dropway/visit', { do: 'try', email, code, next: '/' }))
}

test('a viewer comes in with a code, and is out when they are removed', async () => {
  const drop = await sharedDrop()
  const locked = await visit(drop)
  expect(locked.status).toBe(401)
  expect(locked.text()).not.toContain(SECRET)
  expect(locked.header('cache-control')).toBe('private, no-store')
  const email = `ada-${drop.slug}@example.com`
  const added = await share(drop, { viewers: [{ email: email.toUpperCase() }], invite: false })
  expect(added.status, added.text()).toBe(201)
  const [viewer] = added.json<{ viewers: { id: string; value: string; kind: string; role: string }[] }>().viewers
  expect(viewer).toMatchObject({ value: email, kind: 'email', role: 'view', invited_at: null, visits: 0 })
  const cookie = await comeIn(drop, email)
  const seen = await visit(drop, '/', { cookie })
  expect(seen.status).toBe(200)
  expect(seen.text()).toContain(SECRET)
  expect(seen.header('cache-control')).toBe('private, no-store')
  expect(seen.header('x-robots-tag')).toBe('noindex')
  expect(seen.header('referrer-policy')).toBe('same-origin')
  const removed = await stack.fetch(`${drop.path}/viewers/${viewer!.id}`, { token: owner.token, method: 'DELETE' })
  expect(removed.status).toBe(204)
  expect((await visit(drop, '/', { cookie })).status).toBe(401)
  // On the list again: the old cookie stays dead, a new one opens.
  await share(drop, { viewers: [{ email }], invite: false })
  expect((await visit(drop, '/', { cookie })).status).toBe(401)
  expect((await visit(drop, '/', { cookie: await comeIn(drop, email) })).status).toBe(200)
})

test('an invitation admits without a code; looking at its link uses nothing up; it works once', async () => {
  const email = `grace-${nextSlug}@example.com`
  const drop = await sharedDrop({ access_mode: 'viewers', viewers: email })
  const { link = '' } = await viewerMail(stack, email)
  const target = pathOf(link)
  for (const method of ['HEAD', 'GET', 'GET']) {
    const page = await visit(drop, target, {}, method)
    expect(page.status).toBe(200)
    expect(page.cookies).toEqual([])
    if (method === 'GET') expect(page.text().match(/<button/g)).toHaveLength(1)
  }
  const cookie = cookieOf(await send(drop, target, { next: '/' }))
  expect((await visit(drop, '/', { cookie })).text()).toContain(SECRET)
  expect((await send(drop, target, { next: '/' })).status).toBe(401)
  const { viewers } = (await stack.fetch(`${drop.path}/viewers`, { token: owner.token })).json<{
    viewers: { invited_at: string | null }[]
  }>()
  expect(viewers[0]?.invited_at).not.toBeNull()
})

test('who may comment is told where, and who may look is not', async () => {
  const drop = await sharedDrop()
  const [looks, comments] = [`looks-${drop.slug}@example.com`, `comments-${drop.slug}@example.com`]
  await share(drop, { viewers: [{ email: looks }] })
  await share(drop, { viewers: [{ email: comments }], role: 'comment' })
  const review = `${stack.baseUrl}/review/${drop.slug}`
  const mail = await viewerMail(stack, comments)
  expect(mail.text).toContain(review)
  // The drop stays reachable by the same mail.
  expect((await visit(drop, pathOf(mail.link!))).status).toBe(200)
  expect((await viewerMail(stack, looks)).text).not.toContain(review)
})

test('the button of who may comment leads to the review page, once; looking at it uses nothing up', async () => {
  const drop = await sharedDrop()
  const email = `comments-${drop.slug}@example.com`
  await share(drop, { viewers: [{ email }], role: 'comment' })
  const review = `/review/${drop.slug}`
  const [target] = new RegExp(`${review}/invitation/[\\w-]+`).exec((await viewerMail(stack, email)).text)!
  const browser = new FormBrowser(stack, nextAddress())
  const stranger = await browser.open(`${review}/invitation/x`)
  expect([stranger.status, stranger.header('location')]).toEqual([303, review])
  for (let look = 0; look < 2; look++) expect((await browser.open(target)).text()).toContain('Your name')
  expect((await browser.send(target, { name: ' ' })).status).toBe(400)
  const entered = await browser.send(target, { name: 'Ada' })
  expect([entered.status, entered.header('location')]).toEqual([303, review])
  expect((await browser.open(review)).status).toBe(200)
  // It was for one browser; this one comes back, and another is asked for a code.
  expect((await browser.open(target)).header('location')).toBe(review)
  const other = new FormBrowser(stack, nextAddress())
  expect((await other.open(target)).header('location')).toBe(review)
  expect((await other.open(review)).text()).toContain('Mail me a code')
  // Off the list, out at once.
  const { viewers } = (await stack.fetch(`${drop.path}/viewers`, { token: owner.token })).json<{
    viewers: { id: string }[]
  }>()
  await stack.fetch(`${drop.path}/viewers/${viewers[0]!.id}`, { token: owner.token, method: 'DELETE' })
  expect((await browser.open(review)).status).toBe(401)
})

test('everyone at a domain may look, nobody at a part of it', async () => {
  const drop = await sharedDrop()
  const domain = `team-${drop.slug}.example`
  await share(drop, { viewers: [{ domain: domain.toUpperCase() }] })
  const cookie = await comeIn(drop, `someone@${domain}`)
  expect((await visit(drop, '/', { cookie })).status).toBe(200)
  await send(drop, '/.dropway/visit', { do: 'code', email: `someone@sub.${domain}`, next: '/' })
  await comeIn(drop, `another@${domain}`)
  expect(viewerMails(stack, `someone@sub.${domain}`)).toEqual([])
})

test('codes end after five tries, and each works once', async () => {
  const email = `tries-${nextSlug}@example.com`
  const drop = await sharedDrop({ access_mode: 'viewers', viewers: email, invite: 'false' })
  await send(drop, '/.dropway/visit', { do: 'code', email, next: '/' })
  const { code = '' } = await viewerMail(stack, email)
  const wrong = code === '000000' ? '000001' : '000000'
  for (let attempt = 0; attempt < 5; attempt++)
    expect((await send(drop, '/.dropway/visit', { do: 'try', email, code: wrong, next: '/' })).status).toBe(401)
  expect((await send(drop, '/.dropway/visit', { do: 'try', email, code, next: '/' })).status).toBe(401)
  await send(drop, '/.dropway/visit', { do: 'code', email, next: '/' })
  const second = (await viewerMail(stack, email, 2)).code ?? ''
  cookieOf(await send(drop, '/.dropway/visit', { do: 'try', email, code: ` ${second.slice(0, 3)} ${second.slice(3)}` }))
  expect((await send(drop, '/.dropway/visit', { do: 'try', email, code: second, next: '/' })).status).toBe(401)
})

test('on the list or not: the same answers', async () => {
  const email = `listed-${nextSlug}@example.com`
  const drop = await sharedDrop({ access_mode: 'viewers', viewers: email, invite: 'false' })
  const absent = email.replace('listed', 'absent')
  const answers = []
  for (const asked of [absent, email]) {
    const sent = await send(drop, '/.dropway/visit', { do: 'code', email: asked, next: '/a' })
    const tried = await send(drop, '/.dropway/visit', { do: 'try', email: asked, code: '12345', next: '/a' })
    const told = await send(drop, '/.dropway/visit', { do: 'ask', email: asked, next: '/a' })
    answers.push(
      [sent, tried, told].map(({ status, headers, text }) => {
        const { date: _, 'content-length': __, ...rest } = headers
        return [status, rest, text().replaceAll(asked, '')]
      }),
    )
  }
  expect(answers[0]).toEqual(answers[1])
  // A mail to the other would have gone out before.
  await viewerMail(stack, email)
  expect(viewerMails(stack, absent)).toEqual([])
})

test('a guest link admits as many browsers as it says; ending it closes what it opened', async () => {
  const drop = await sharedDrop()
  const made = await stack.fetch(`${drop.path}/guest-links`, {
    token: owner.token,
    json: { name: 'printer', max_uses: 1, expires_in: '7d' },
  })
  expect(made.status, made.text()).toBe(201)
  const link = made.json<{ id: string; url: string; uses: number }>()
  const target = pathOf(link.url)
  expect((await visit(drop, target, {}, 'HEAD')).cookies).toEqual([])
  expect((await visit(drop, target, { 'user-agent': 'Slackbot-LinkExpanding 1.0' })).cookies).toEqual([])
  const cookie = cookieOf(await visit(drop, target))
  expect((await visit(drop, '/', { cookie })).text()).toContain(SECRET)
  expect((await visit(drop, target)).status).toBe(401)
  const token = target.split('/').at(-1)!
  const program = await visit(drop, '/', { 'dropway-guest': token })
  expect([program.status, program.header('access-control-allow-origin')]).toEqual([200, '*'])
  const list = await stack.fetch(`${drop.path}/guest-links`, { token: owner.token })
  expect(list.json().guest_links).toMatchObject([{ id: link.id, name: 'printer', uses: 1, max_uses: 1 }])
  expect(list.text()).not.toContain(token)
  const ended = await stack.fetch(`${drop.path}/guest-links/${link.id}`, { token: owner.token, method: 'DELETE' })
  expect(ended.status).toBe(204)
  expect((await visit(drop, '/', { cookie })).status).toBe(401)
  expect((await visit(drop, '/', { 'dropway-guest': token })).status).toBe(401)
})

test('a token of the organisation opens the drop, another one does not; preflights are answered', async () => {
  const drop = await sharedDrop()
  const stranger = await stack.createAccount('free')
  const own = await visit(drop, '/', { authorization: `Bearer ${owner.token}` })
  expect([own.status, own.header('access-control-allow-origin')]).toEqual([200, '*'])
  expect(own.text()).toContain(SECRET)
  const other = await visit(drop, '/', { authorization: `Bearer ${stranger.token}` })
  expect([other.status, other.header('access-control-allow-origin')]).toEqual([401, '*'])
  const preflight = await stack.visit(drop.slug, '/', {
    method: 'OPTIONS',
    h2: false,
    headers: { origin: 'https://elsewhere.example', 'access-control-request-headers': 'authorization' },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.header('access-control-allow-origin')).toBe('*')
  expect(preflight.header('access-control-allow-headers')).toContain('authorization')
  expect(preflight.header('access-control-allow-credentials')).toBeUndefined()
})

test('who looked is told within seconds', async () => {
  const email = `looks-${nextSlug}@example.com`
  const drop = await sharedDrop({ access_mode: 'viewers', viewers: email, invite: 'false' })
  const cookie = await comeIn(drop, email)
  await visit(drop, '/', { cookie })
  await visit(drop, '/', { cookie })
  await expect
    .poll(async () => (await stack.fetch(`${drop.path}/viewers`, { token: owner.token })).json().viewers[0].visits)
    .toBe(2)
})

test('lists are checked whole', async () => {
  const drop = await sharedDrop()
  const none = async () =>
    expect((await stack.fetch(`${drop.path}/viewers`, { token: owner.token })).json()).toEqual({ viewers: [] })
  const many = Array.from({ length: 101 }, (_, index) => ({ email: `v${index}@example.com` }))
  for (const json of [
    { viewers: many },
    { viewers: [] },
    { viewers: [{ email: 'ada@example.com' }, { email: 'not an address' }] },
    { viewers: [{ email: 'ada@example.com' }, { phone: '1' }] },
    { viewers: [{ email: 'ada@example.com', domain: 'example.com' }] },
    { viewers: [{ email: 'ada@example.com' }], colour: 'red' },
    { viewers: [{ domain: 'com' }] },
  ])
    expect((await share(drop, json)).status, JSON.stringify(json)).toBe(400)
  await none()
  expect((await share(drop, { viewers: many.slice(0, 50), invite: false })).status).toBe(201)
  expect((await share(drop, { viewers: many.slice(0, 50), invite: false })).status).toBe(201)
  expect(refusal(await share(drop, { viewers: many.slice(50, 51), invite: false }))).toBe('403 plan_limit')
})

test('modes change by PATCH; what was opened in one is closed by the next, and stays closed', async () => {
  const email = `modes-${nextSlug}@example.com`
  const drop = await sharedDrop({ access_mode: 'viewers', viewers: email, invite: 'false' })
  const cookie = await comeIn(drop, email)
  expect((await api.patch(drop.id, { access_mode: 'password' })).status).toBe(400)
  const password = await api.patch(drop.id, { access_mode: 'password', password: 'open sesame' })
  expect(password.json()).toMatchObject({ access_mode: 'password', has_password: true })
  expect((await visit(drop, '/', { cookie })).status).toBe(401)
  expect((await api.patch(drop.id, { access_mode: 'viewers' })).json()).toMatchObject({
    access_mode: 'viewers',
    has_password: false,
  })
  expect((await visit(drop, '/', { cookie })).status).toBe(401)
  expect((await api.patch(drop.id, { password: null })).json()).toMatchObject({ access_mode: 'viewers' })
  expect((await api.patch(drop.id, { access_mode: 'public' })).json()).toMatchObject({ access_mode: 'public' })
  expect((await visit(drop)).text()).toContain(SECRET)
  expect((await api.patch(drop.id, { access_mode: 'viewers' })).status).toBe(200)
  expect((await visit(drop, '/', { cookie })).status).toBe(401)
  expect((await visit(drop, '/', { cookie: await comeIn(drop, email) })).status).toBe(200)
})

test('the time for visitors ends for all of them, and the owner extends it', async () => {
  const drop = await sharedDrop()
  const ended = await api.patch(drop.id, { access_until: '2020-01-01T00:00:00Z' })
  expect(ended.json()).toMatchObject({ access_until: '2020-01-01T00:00:00.000Z', state: 'expired' })
  expect((await visit(drop)).status).toBe(410)
  expect((await visit(drop, '/', { authorization: `Bearer ${owner.token}` })).status).toBe(410)
  expect((await api.patch(drop.id, { expires_in: '7d' })).json()).toMatchObject({ state: 'live' })
  expect((await visit(drop)).status).toBe(401)
  expect((await api.patch(drop.id, { access_until: null })).json()).toMatchObject({ access_until: null })
})

test('a time that cannot be kept is refused at every door, and the first and the last that can are kept', async () => {
  const drop = await sharedDrop()
  for (const access_until of ['1970-01-01T00:00:00.000Z', '9999-12-31T23:59:59.000Z'])
    expect((await api.patch(drop.id, { access_until })).json()).toMatchObject({ access_until })
  for (const time of ['0000-01-01T00:00:00Z', '9999-12-31T23:59:59-14:00']) {
    const link = { token: owner.token, json: { expires_at: time } }
    const doors = {
      patch: await api.patch(drop.id, { access_until: time }),
      link: await stack.fetch(`${drop.path}/guest-links`, link),
      publish: await api.upload(drop.id, fileForm('page.html', '<title>Plan</title>', { access_until: time })),
    }
    for (const [door, answer] of Object.entries(doors)) expect([door, answer.status]).toEqual([door, 400])
  }
})

test('without an account nothing is published privately, and nothing openly instead', async () => {
  const wishes: Record<string, string>[] = [
    { access_mode: 'viewers' },
    { viewers: 'a@b.example' },
    { guest_link: 'true' },
  ]
  for (const fields of wishes) {
    const answer = await stack.fetch('/api/v1/drops', {
      from: nextAddress(),
      body: fileForm('page.html', '<title>x</title>', fields),
    })
    expect(answer.status, answer.text()).toBe(400)
  }
  const json = { markdown: '# x', access_mode: 'viewers' }
  expect((await stack.fetch('/api/v1/drops-md', { from: nextAddress(), json })).status).toBe(400)
})

test('an organisation may allow no public drops', async () => {
  const admin = await stack.createAccount('plus')
  const own = apiFor(stack, admin)
  const open = (await own.create()).json<Shared>()
  await own.upload(open.id, fileForm('page.html', '<title>open</title>'))
  const policy = (visibility_policy: string) =>
    stack.fetch(`/api/v1/organisations/${admin.org_id}`, {
      token: admin.token,
      method: 'PATCH',
      json: { visibility_policy },
    })
  const closed = await policy('no_public')
  expect(closed.json()).toMatchObject({ visibility_policy: 'no_public', still_public: [{ id: open.id }] })
  expect((await stack.visit(open.slug)).status).toBe(200)
  expect(refusal(await own.patch(open.id, { access_mode: 'public' }))).toBe('403 policy')
  expect(refusal(await own.patch(open.id, { password: 'open sesame' }))).toBe('403 policy')
  const next = (await own.create()).json<Shared>()
  expect(refusal(await own.upload(next.id, fileForm('page.html', '<title>x</title>', { access_mode: 'public' })))).toBe(
    '403 policy',
  )
  expect((await own.upload(next.id, fileForm('page.html', '<title>x</title>'))).status).toBe(201)
  expect((await stack.visit(next.slug)).status).toBe(401)
  await policy('private_by_default')
  const last = (await own.create()).json<Shared & { access_mode: string }>()
  expect(last.access_mode).toBe('viewers')
  expect((await own.upload(last.id, fileForm('page.html', '<title>x</title>', { access_mode: 'public' }))).status).toBe(
    201,
  )
  expect((await stack.visit(last.slug)).status).toBe(200)
})

test('a stranger asks, the owner presses one button, and the stranger is invited; the owner can switch it off', async () => {
  const drop = await sharedDrop()
  const email = `asks-${drop.slug}@example.com`
  const asked = await send(drop, '/.dropway/visit', { do: 'ask', email, next: '/' })
  expect(asked.status).toBe(200)
  const mailed = () => viewerMails(stack, owner.email).find(({ subject }) => subject.includes(email))
  await expect.poll(mailed).toBeDefined()
  const { link = '' } = mailed()!
  const page = await stack.fetch(link)
  expect(page.text().match(/<button class="button primary">/g)).toHaveLength(1)
  const csrf = /name="csrf" value="([^"]+)"/.exec(page.text())?.[1] ?? ''
  const token = new URL(link).searchParams.get('token') ?? ''
  const decided = await stack.fetch('/access-request', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', cookie: page.cookies.join('; ') },
    body: new URLSearchParams({ csrf, token }).toString(),
  })
  expect(decided.status, decided.text()).toBe(200)
  const invitation = await viewerMail(stack, email)
  cookieOf(await send(drop, pathOf(invitation.link ?? ''), { next: '/' }))
  await api.patch(drop.id, { access_requests: false })
  const again = await send(drop, '/.dropway/visit', { do: 'code', email: `late-${email}`, next: '/' })
  expect(again.text()).not.toContain('Ask the owner')
})

test('a reminder goes out once, to who has not looked', async () => {
  const email = `slow-${nextSlug}@example.com`
  const drop = await sharedDrop({ access_mode: 'viewers', viewers: email })
  const [viewer] = (await stack.fetch(`${drop.path}/viewers`, { token: owner.token })).json().viewers
  const remind = () => stack.fetch(`${drop.path}/viewers/${viewer.id}/remind`, { token: owner.token, method: 'POST' })
  expect((await remind()).status).toBe(200)
  expect((await viewerMail(stack, email, 2)).subject).toContain('Still waiting')
  expect((await remind()).status).toBe(400)
})

test('people with an account find what is shared with them', async () => {
  const drop = await sharedDrop()
  const reader = await stack.createAccount('free')
  expect((await stack.fetch('/api/v1/shared', { token: reader.token })).json()).toEqual([])
  await share(drop, { viewers: [{ email: reader.email }], invite: false })
  expect((await stack.fetch('/api/v1/shared', { token: reader.token })).json()).toMatchObject([{ id: drop.id }])
  expect((await stack.fetch('/api/v1/shared', { token: owner.token })).json()).toEqual([])
})

test('deleting a drop forgets who could see it', async () => {
  const email = `gone-${nextSlug}@example.com`
  const drop = await sharedDrop({ access_mode: 'viewers', viewers: email, invite: 'false' })
  const reader = await stack.createAccount('free')
  await share(drop, { viewers: [{ email: reader.email }], invite: false })
  const cookie = await comeIn(drop, email)
  expect((await api.delete(drop.id)).status).toBe(204)
  expect((await visit(drop, '/', { cookie })).status).toBe(410)
  expect((await stack.fetch('/api/v1/shared', { token: reader.token })).json()).toEqual([])
})

test('an assistant publishes privately, invites, and reads its page back in two calls', async () => {
  const client = await connectWithToken(stack, owner.token, 'modern')
  const email = `mcp-${process.pid}@example.com`
  const slug = `plan-mcp-${process.pid}`
  const made = await client.callTool({
    name: 'service_publish',
    arguments: { slug, content: `<p>${SECRET}</p>`, access_mode: 'viewers', viewers: [email], guest_link: true },
  })
  expect(made.isError, JSON.stringify(made.content)).toBeFalsy()
  expect(made.structuredContent).toMatchObject({
    access_mode: 'viewers',
    guest_link: expect.stringContaining('/guest/'),
  })
  const read = await client.callTool({ name: 'service_read', arguments: { id: slug, path: 'index.html' } })
  expect(JSON.stringify(read.content)).toContain(SECRET)
  expect((await stack.visit(slug)).status).toBe(401)
  await viewerMail(stack, email)
  const opened = await client.callTool({ name: 'service_settings', arguments: { id: slug, access_mode: 'public' } })
  expect(opened.isError).toBe(true)
  const agreed = { id: slug, access_mode: 'public', confirm: true }
  expect((await client.callTool({ name: 'service_settings', arguments: agreed })).isError).toBeFalsy()
  expect((await stack.visit(slug)).status).toBe(200)
})

test('an assistant does not take the only lock away before the person has agreed', async () => {
  const client = await connectWithToken(stack, owner.token, 'modern')
  const slug = `plan-lock-${process.pid}`
  const set = async (settings: object): Promise<unknown> => {
    const { isError, content } = await client.callTool({
      name: 'service_settings',
      arguments: { id: slug, ...settings },
    })
    return isError ? JSON.stringify(content) : 'changed'
  }
  const made = { slug, content: `<p>${SECRET}</p>`, password: 'open sesame' }
  expect((await client.callTool({ name: 'service_publish', arguments: made })).isError).toBeFalsy()
  expect(await set({ password: '' })).toContain('not_confirmed')
  expect((await stack.visit(slug)).status).toBe(401)
  expect(await set({ access_mode: 'viewers', password: '' })).toBe('changed')
  expect((await stack.visit(slug)).status).toBe(401)
  expect(await set({ password: 'open sesame' })).toBe('changed')
  expect(await set({ password: '', confirm: true })).toBe('changed')
  expect((await stack.visit(slug)).status).toBe(200)
})

test('a member of the organisation is a viewer, until they leave', async () => {
  const team = await stack.createAccount('business')
  const member = await stack.createAccount('free')
  const invitation = await stack.fetch(`/api/v1/organisations/${team.org_id}/invitations`, {
    token: team.token,
    json: { email: member.email },
  })
  expect(invitation.status, invitation.text()).toBe(201)
  const joining = new URL(await mailedLink(stack, member.email, '/invitation')).searchParams.get('token')
  const joined = await stack.fetch('/api/v1/invitations/accept', { token: member.token, json: { token: joining } })
  expect(joined.status, joined.text()).toBe(200)
  const own = apiFor(stack, team)
  const site = (await own.create()).json<Shared>()
  await own.upload(site.id, fileForm('page.html', `<p>${SECRET}</p>`, { access_mode: 'viewers' }))
  const drop = { ...site, path: `/api/v1/sites/${site.id}` }
  const cookie = await comeIn(drop, member.email)
  expect((await visit(drop, '/', { cookie })).status).toBe(200)
  const left = await stack.fetch(`/api/v1/organisations/${team.org_id}/members/${member.user_id}`, {
    token: team.token,
    method: 'DELETE',
  })
  expect(left.status, left.text()).toBe(204)
  expect((await visit(drop, '/', { cookie })).status).toBe(401)
})
