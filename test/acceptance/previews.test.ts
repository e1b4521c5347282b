/** Previews: addresses that no one guesses, who may see them, and previews with names, through every door. */
import { beforeAll, describe, expect, test } from 'vitest'
import { apiFor, bundleForm, fileForm } from '../support/api.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

const PASSWORD = 'correct horse battery'
let stack: Stack
let account: Account

beforeAll(async () => {
  stack = await sharedStack()
  account = await stack.createAccount('plus', { password: PASSWORD })
})

const sitePath = (id: string, rest = '') => `/api/v1/sites/${id}${rest}`

async function newDrop(owner = account, slug?: string) {
  const api = apiFor(stack, owner)
  const site = (await api.create(slug === undefined ? {} : { slug })).json() as {
    id: string
    slug: string
    url: string
  }
  const publish = async (text: string, fields: Readonly<Record<string, string>> = {}) =>
    api.upload(site.id, fileForm('index.html', text, fields))
  const previews = async () => (await stack.fetch(sitePath(site.id, '/previews'), { token: owner.token })).json()
  const look = async (url: string, options = {}) => {
    const answer = await stack.fetch(url, options)
    return answer.status === 200 ? answer.text().split('<')[0] : answer.status
  }
  return { ...site, api, publish, previews, look }
}

test('a version’s preview has 60 bits that cannot be counted; the number alone is for members', async () => {
  const drop = await newDrop()
  const { preview_url: url } = (await drop.publish('one')).json()
  await drop.publish('two')
  const [label] = new URL(url).hostname.split('--')
  expect(label).toMatch(/^1-[a-z2-7]{12}$/)
  expect(await drop.look(url)).toBe('one')
  expect(await drop.look(url.replace('1-', '2-'))).toBe(404)
  const numbered = url.replace(label!, '1')
  expect((await stack.fetch(numbered)).status).toBe(302)
  expect((await stack.fetch(numbered, { headers: { 'sec-fetch-dest': 'script' } })).status).toBe(404)
  expect(await drop.look(numbered, { token: account.token })).toBe('one')
  const other = await stack.createAccount('free')
  expect(await drop.look(numbered, { token: other.token })).toBe(404)
  expect(await drop.look(numbered, { token: 'dw_nonsense' })).toBe(404)
})

test('a member’s browser comes over the service’s host, a stranger’s does not', async () => {
  const drop = await newDrop()
  await drop.publish('for members')
  const numbered = new URL(drop.url)
  numbered.hostname = `1--${numbered.hostname}`
  const asked = await stack.fetch(`${numbered.origin}/deep?x=1`)
  const [passPath] = [asked.header('location')!.replace(stack.baseUrl, '')]
  expect(passPath).toBe(`/sites/${drop.id}/pass?host=${numbered.hostname}&next=%2Fdeep%3Fx%3D1`)

  const member = new FormBrowser(stack, '198.51.100.41')
  expect((await member.send('/signin', { email: account.email, password: PASSWORD })).status).toBe(303)
  const back = (await member.open(passPath!)).header('location')!
  expect(back.startsWith(`${numbered.origin}/.dropway/member?pass=`)).toBe(true)
  const entered = await stack.fetch(back)
  expect([entered.status, entered.header('location')]).toEqual([303, '/deep?x=1'])
  const cookie = entered.header('set-cookie')!.split(';')[0]!
  expect(await drop.look(numbered.origin, { headers: { cookie } })).toBe('for members')
  expect((await stack.fetch(back.replace('pass=1', 'pass=2'))).status).toBe(404)

  const neighbour = await newDrop()
  await neighbour.publish('theirs')
  const elsewhere = new URL(neighbour.url)
  elsewhere.hostname = `1--${elsewhere.hostname}`
  expect((await stack.fetch(elsewhere.origin, { headers: { cookie } })).status).toBe(302)

  const strange = await stack.createAccount('free', { password: PASSWORD })
  const stranger = new FormBrowser(stack, '198.51.100.42')
  await stranger.send('/signin', { email: strange.email, password: PASSWORD })
  expect((await stranger.open(passPath!)).status).toBe(404)
})

test('previews: members closes addresses to others, off to everyone, named ones too', async () => {
  const drop = await newDrop()
  const { preview_url: url } = (await drop.publish('one')).json()
  const named = (await drop.publish('named', { preview: 'pr-1' })).json().preview_url
  expect([await drop.look(url), await drop.look(named)]).toEqual(['one', 'named'])
  expect((await drop.api.patch(drop.id, { previews: 'members' })).json().previews).toBe('members')
  expect([await drop.look(url), await drop.look(named)]).toEqual([302, 302])
  expect(await drop.look(named, { token: account.token })).toBe('named')
  await drop.api.patch(drop.id, { previews: 'off' })
  for (const address of [url, named]) expect(await drop.look(address, { token: account.token })).toBe(404)
  expect((await drop.previews())[0].url).toBeNull()
  expect((await drop.api.patch(drop.id, { previews: 'all' })).status).toBe(400)
  await drop.api.patch(drop.id, { previews: 'link', password: 'sesame open' })
  expect([await drop.look(url), await drop.look(named)]).toEqual([401, 401])
})

test('a slug that is too long for a label gets a shortened address that works', async () => {
  const slug = `long-${account.email.replace(/[^a-z0-9]/g, '').slice(0, 12)}-${'x'.repeat(40)}`
  const drop = await newDrop(account, slug)
  const { preview_url: url } = (await drop.publish('one')).json()
  const named = (await drop.publish('named', { preview: 'a-rather-long-name-of-a-branch' })).json().preview_url
  for (const address of [url, named]) expect(new URL(address).hostname.split('.')[0]!.length).toBeLessThanOrEqual(63)
  expect([await drop.look(url), await drop.look(named)]).toEqual(['one', 'named'])
})

describe('named previews', () => {
  test('publish, move, list, promote, remove; what is live and its versions are left alone', async () => {
    const drop = await newDrop()
    await drop.publish('live')
    const first = await drop.publish('try one', { preview: 'pr-12' })
    expect([first.status, first.json().preview]).toEqual([201, 'pr-12'])
    const { preview_url: url } = first.json()
    expect(new URL(url).hostname).toBe(`pr-12--${new URL(drop.url).hostname}`)
    expect([await drop.look(drop.url), await drop.look(url)]).toEqual(['live', 'try one'])
    await drop.publish('try two', { preview: 'pr-12' })
    expect(await drop.look(url)).toBe('try two')
    expect(await drop.previews()).toEqual([
      expect.objectContaining({ name: 'pr-12', url, version_number: 3, live: false }),
    ])
    const list = (await drop.api.versions(drop.id)).json()
    expect(list.map((each: { version_number: number }) => each.version_number)).toEqual([1])

    const promoted = await stack.fetch(sitePath(drop.id, '/previews/pr-12/promote'), {
      method: 'POST',
      token: account.token,
    })
    expect([promoted.status, promoted.json().version_number]).toEqual([200, 3])
    expect(await drop.look(drop.url)).toBe('try two')
    const removed = await stack.fetch(sitePath(drop.id, '/previews/pr-12'), { method: 'DELETE', token: account.token })
    expect(removed.status).toBe(204)
    expect([await drop.look(drop.url), await drop.look(url)]).toEqual(['try two', 404])
    const again = await stack.fetch(sitePath(drop.id, '/previews/pr-12'), { method: 'DELETE', token: account.token })
    expect(again.status).toBe(404)
  })

  test.each(['12', 'Pr', 'a--b', 'a-', '-a', 'a b', 'xn', 'x'.repeat(41)])(
    'the name %j is refused',
    async (preview) => {
      const drop = await newDrop()
      expect((await drop.publish('x', { preview })).status).toBe(400)
    },
  )

  test('a wrong name is told in the same words by every door', async () => {
    const drop = await newDrop()
    const words =
      'preview: use lower-case letters, digits and single hyphens, beginning with a letter, at most 40 characters.'
    const asForm = await drop.publish('x', { preview: 'PR 12' })
    const asJson = await stack.fetch(sitePath(drop.id, '/uploads'), {
      token: account.token,
      json: { files: [{ path: 'index.html', sha256: 'a'.repeat(64), size: 1 }], preview: 'PR 12' },
    })
    const said = [asForm, asJson].map((answer) => answer.json().detail)
    expect(said).toEqual([words, words])
  })

  test('a drop’s first version may be one; it is not live', async () => {
    const drop = await newDrop()
    const { preview_url: url } = (await drop.publish('first', { preview: 'try' })).json()
    expect([await drop.look(drop.url), await drop.look(url)]).toEqual([404, 'first'])
  })

  test('the plan caps them per drop, retention does not count them, purge spares them unless it says all', async () => {
    const free = await stack.createAccount('free')
    const drop = await newDrop(free)
    for (const text of ['1', '2', '3']) await drop.publish(text)
    const { preview_url: url } = (await drop.publish('named', { preview: 'one' })).json()
    const over = await drop.publish('x', { preview: 'two' })
    expect([over.status, over.json().error]).toEqual([403, 'plan_limit'])
    const list = (await drop.api.versions(drop.id)).json()
    expect(list.map((each: { version_number: number }) => each.version_number)).toEqual([3, 2, 1])
    await drop.publish('clean', { purge: 'true' })
    expect(await drop.look(url)).toBe('named')
    await drop.publish('cleaner', { purge: 'all' })
    expect([await drop.look(url), await drop.previews()]).toEqual([404, []])
    expect((await drop.publish('x', { preview: 'one', purge: 'true' })).status).toBe(400)
  })

  test('no slug with two hyphens in a row can sit on one', async () => {
    const drop = await newDrop()
    const taken = await apiFor(stack, account).create({ slug: `pr-7--${drop.slug}` })
    expect([taken.status, taken.json().error]).toEqual([409, 'slug_reserved'])
  })

  test('the upload of changed files takes preview and purge too', async () => {
    const drop = await newDrop()
    await drop.api.uploadBundle(drop.id, bundleForm({ 'index.html': 'live', 'a.js': 'a' }))
    const sha256 = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'
    const send = async (rest: object) => {
      const root = sitePath(drop.id, '/uploads')
      const json = { files: [{ path: 'index.html', sha256, size: 5 }], ...rest }
      const upload = (await stack.fetch(root, { token: account.token, json })).json()
      for (const hash of upload.missing)
        await stack.fetch(`${root}/${upload.upload_id}/blobs/${hash}`, {
          method: 'PUT',
          token: account.token,
          body: 'hello',
          headers: { 'content-type': 'application/octet-stream' },
        })
      return stack.fetch(`${root}/${upload.upload_id}/finish`, { method: 'POST', token: account.token })
    }
    const preview = await send({ preview: 'pr-9' })
    expect([preview.status, preview.json().preview]).toEqual([201, 'pr-9'])
    expect([await drop.look(drop.url), await drop.look(preview.json().preview_url)]).toEqual(['live', 'hello'])
    expect((await send({ purge: true })).json().report.kept.files).toBe(0)
    expect((await stack.visit(drop.slug, '/a.js')).status).toBe(404)
  })
})
