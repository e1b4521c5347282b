/** What the review page is made of, as programs see it: the frame, the stream of versions, and that nobody else gets any of it. */
import https from 'node:https'
import { beforeAll, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

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

interface Events {
  readonly status: number
  /** Resolves with the text so far once it holds this. */
  until(text: string): Promise<string>
  close(): void
}

function listen(path: string, headers: Record<string, string>): Promise<Events> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(stack.baseUrl)
    const options = { host: '127.0.0.1', servername: hostname, port, path, ca: stack.ca }
    const request = https.get({ ...options, headers: { host: `${hostname}:${port}`, ...headers } }, (answer) => {
      let seen = ''
      const waiting = new Set<() => void>()
      answer.setEncoding('utf8').on('data', (piece: string) => {
        seen += piece
        for (const look of waiting) look()
      })
      answer.on('error', () => {})
      resolve({
        status: answer.statusCode ?? 0,
        close: () => request.destroy(),
        until: (text) =>
          new Promise((found) => {
            const look = (): void => {
              if (!seen.includes(text)) return
              waiting.delete(look)
              found(seen)
            }
            waiting.add(look)
            look()
          }),
      })
    })
    request.on('error', reject)
  })
}

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
  events.close()
})

test('a preview that a member has open reloads by itself; for who only has its address nothing is added', async () => {
  const drop = await newDrop()
  await publish(drop, 'draft', { preview: 'pr-7' })
  const host = `pr-7--${drop.slug}`
  expect((await stack.visit(host)).text()).not.toContain('followPreview')
  expect((await stack.visit(host, '/.dropway/events')).status).toBe(404)
})
