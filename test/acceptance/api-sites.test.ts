/** The site endpoints of the REST API: shapes, statuses, and what a visitor sees after each answer. */
import { beforeAll, describe, expect, test } from 'vitest'
import { apiFor, bundleForm, fileForm } from '../support/api.ts'
import { watchDay } from '../support/midnight.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let owner: Account
let api: ReturnType<typeof apiFor>

beforeAll(async () => {
  stack = await sharedStack()
  owner = await stack.createAccount('business')
  api = apiFor(stack, owner)
})

async function newSite(json: unknown = {}): Promise<{ id: string; slug: string }> {
  const created = await api.create(json)
  expect(created.status).toBe(201)
  return created.json()
}

describe('POST /sites', () => {
  test('reserves a random slug with an empty body', async () => {
    const created = await stack.fetch('/api/v1/sites', { token: owner.token, method: 'POST' })
    expect(created.status).toBe(201)
    expect(created.json()).toMatchObject({
      id: expect.stringMatching(/^st_/),
      slug: expect.stringMatching(/^[a-z0-9-]{3,63}$/),
      name: '',
      access_mode: 'public',
      has_password: false,
      branding_enabled: false,
      spa_fallback: false,
      live_version_id: null,
      views_30d: 0,
      state: 'reserved',
      analytics: null,
    })
    expect((await stack.visit(created.json().slug)).status).toBe(404)
  })

  test('a free site carries the badge', async () => {
    const free = apiFor(stack, await stack.createAccount('free'))
    expect((await free.create()).json()).toMatchObject({ branding_enabled: true })
  })

  test.each([
    [{ slug: 'ab' }, 400, 'invalid_request'],
    [{ slug: 'Upper' }, 400, 'invalid_request'],
    [{ slug: '-edge' }, 400, 'invalid_request'],
    [{ slug: 'a'.repeat(64) }, 400, 'invalid_request'],
    [{ slug: 'www' }, 409, 'slug_reserved'],
    [{ slug: 'xn--abc' }, 409, 'slug_reserved'],
    [{ slug: 't-0123456789abcdef' }, 409, 'slug_reserved'],
    [{ slug: 12 }, 400, 'invalid_request'],
    [{ colour: 'red' }, 400, 'invalid_request'],
    [[], 400, 'invalid_request'],
  ])('%j is refused with %i %s', async (body, status, error) => {
    const answer = await api.create(body)
    expect([answer.status, answer.json()]).toMatchObject([status, { error, detail: expect.any(String) }])
  })

  test('bad JSON and a wrong content type say so', async () => {
    const bad = await stack.fetch('/api/v1/sites', {
      token: owner.token,
      body: '{"slug":',
      headers: { 'content-type': 'application/json' },
    })
    expect([bad.status, bad.json().error]).toEqual([400, 'invalid_json'])
    const text = await stack.fetch('/api/v1/sites', {
      token: owner.token,
      body: 'slug=x',
      headers: { 'content-type': 'text/plain' },
    })
    expect([text.status, text.json().error]).toEqual([400, 'invalid_request'])
  })

  test('a taken slug is 409', async () => {
    const { slug } = await newSite()
    expect((await api.create({ slug })).json()).toMatchObject({ error: 'slug_taken' })
  })
})

describe('uploads', () => {
  test('a page is live when the 201 arrives', async () => {
    const site = await newSite()
    const uploaded = await api.upload(site.id, fileForm('anything.html', '<title>Hi</title><h1>one</h1>'))
    expect(uploaded.status).toBe(201)
    expect(uploaded.json()).toMatchObject({
      version_id: expect.stringMatching(/^v_/),
      version_number: 1,
      byte_size: 29,
      file_count: 1,
      report: { warnings: [] },
    })
    const visit = await stack.visit(site.slug)
    expect([visit.status, visit.text(), visit.header('dropway-version')]).toEqual([
      200,
      '<title>Hi</title><h1>one</h1>',
      '1',
    ])
    expect((await api.get(site.id)).json()).toMatchObject({
      state: 'live',
      title: 'Hi',
      live_version_id: uploaded.json().version_id,
    })
  })

  test('Markdown is rendered, its source is exported', async () => {
    const account = await stack.createAccount('plus')
    const own = apiFor(stack, account)
    const site = (await own.create()).json()
    await own.upload(site.id, fileForm('notes.md', '# Notes\n\n- [x] done\n'))
    const page = (await stack.visit(site.slug)).text()
    expect(page).toContain('<h1')
    expect(page).toContain('type="checkbox"')
    const archive = await stack.fetch('/api/v1/sites/export', { token: account.token })
    expect([archive.status, archive.header('content-type')]).toEqual([200, 'application/zip'])
    expect(archive.body.includes(`${site.slug}/notes.md`)).toBe(true)
  })

  test.each([
    ['a program', fileForm('cat.exe', 'x'), 400, 'unsupported_file_type'],
    ['a program as a document', fileForm('cat.exe', 'x', { as: 'document' }), 400, 'unsupported_file_type'],
    ['a document that is not said to be one', fileForm('notes.txt', 'x'), 400, 'unsupported_file_type'],
    ['something unknown', fileForm('notes.html', 'x', { as: 'poem' }), 400, 'invalid_request'],
    [
      'no file',
      (() => {
        const form = new FormData()
        form.append('note', 'x')
        return form
      })(),
      400,
      'invalid_request',
    ],
    [
      'two files',
      (() => {
        const form = fileForm('a.html', 'a')
        form.append('file', new File(['b'], 'b.html'))
        return form
      })(),
      400,
      'invalid_request',
    ],
  ])('single upload of %s is refused', async (_, form, status, error) => {
    const site = await newSite()
    const answer = await api.upload(site.id, form)
    expect([answer.status, answer.json().error]).toEqual([status, error])
    expect((await stack.visit(site.slug)).status).toBe(404)
  })

  test('a document is published when it is said to be one, in the form or in the query', async () => {
    const site = await newSite()
    expect((await api.upload(site.id, fileForm('notes.txt', 'x', { as: 'document' }))).status).toBe(201)
    const { token } = owner
    const path = `/api/v1/sites/${site.id}/upload?as=document`
    expect((await stack.fetch(path, { token, body: fileForm('notes.txt', 'y') })).status).toBe(201)
  })

  test('a change that says nothing is refused', async () => {
    const site = await newSite()
    const path = `/api/v1/sites/${site.id}`
    expect((await stack.fetch(path, { token: owner.token, method: 'PATCH' })).status).toBe(400)
  })

  test('a bundle by files and paths, interleaved or not', async () => {
    const site = await newSite()
    const interleaved = bundleForm({
      'index.html': '<a href="about/">x</a>',
      'about/index.html': 'about',
      'css/site.css': 'a{}',
    })
    expect((await api.uploadBundle(site.id, interleaved)).json()).toMatchObject({ version_number: 1, file_count: 3 })
    expect((await stack.visit(site.slug, '/about')).header('location')).toBe('/about/')

    const grouped = new FormData()
    for (const path of ['index.html', 'b.txt']) grouped.append('paths', path)
    for (const content of ['<p>two</p>', 'bee']) grouped.append('files', new File([content], 'ignored.bin'))
    expect((await api.uploadBundle(site.id, grouped)).status).toBe(201)
    expect((await stack.visit(site.slug, '/b.txt')).text()).toBe('bee')
  })

  test.each([
    ['no index.html', bundleForm({ 'a.html': 'x' }), 'missing_index'],
    ['a parent path', bundleForm({ 'index.html': 'x', '../up.html': 'x' }), 'invalid_request'],
    ['an absolute path', bundleForm({ 'index.html': 'x', '/etc/passwd': 'x' }), 'invalid_request'],
    [
      'a path twice',
      (() => {
        const form = bundleForm({ 'index.html': 'x' })
        form.append('files', new File(['y'], 'y'))
        form.append('paths', 'index.html')
        return form
      })(),
      'invalid_request',
    ],
    [
      'fewer paths than files',
      (() => {
        const form = bundleForm({ 'index.html': 'x' })
        form.append('files', new File(['y'], 'y'))
        return form
      })(),
      'invalid_request',
    ],
    ['something that is no zip', fileForm('site.zip', 'not a zip'), 'archive_rejected'],
    ['another archive', fileForm('site.tar.gz', 'x'), 'unsupported_file_type'],
    ['an empty body', new FormData(), 'invalid_request'],
  ])('a bundle with %s is refused', async (_, form, error) => {
    const site = await newSite()
    const answer = await api.uploadBundle(site.id, form)
    expect([answer.status, answer.json().error]).toEqual([400, error])
    expect((await api.versions(site.id)).json()).toEqual([])
  })

  test('the cap of the plan holds for the upload as a whole', async () => {
    const free = apiFor(stack, await stack.createAccount('free'))
    const site = (await free.create()).json()
    const answer = await free.uploadBundle(
      site.id,
      bundleForm({ 'index.html': 'x', 'a.bin': new Uint8Array(6_000_000), 'b.bin': new Uint8Array(6_000_000) }),
    )
    expect([answer.status, answer.json().error]).toEqual([413, 'upload_too_large'])
    expect((await free.versions(site.id)).json()).toEqual([])
  })

  test('if_version protects against someone else publishing first', async () => {
    const site = await newSite()
    await api.upload(site.id, fileForm('a.html', 'one', { if_version: '0' }))
    const late = await api.upload(site.id, fileForm('a.html', 'late', { if_version: '0' }))
    expect([late.status, late.json().error]).toEqual([412, 'version_changed'])
    expect(
      (await api.upload(site.id, fileForm('a.html', 'two', { if_version: '1', message: 'second' }))).json(),
    ).toMatchObject({ version_number: 2, message: 'second' })
  })
})

describe('versions', () => {
  test('newest first, promote flips the address and is a publish of its own', async () => {
    const site = await newSite()
    const first = (await api.upload(site.id, fileForm('a.html', '<title>One</title>one'))).json()
    const second = (await api.upload(site.id, fileForm('a.html', '<title>Two</title>two'))).json()
    expect(
      (await api.versions(site.id))
        .json()
        .map((version: { version_number: number; live: boolean }) => [version.version_number, version.live]),
    ).toEqual([
      [2, true],
      [1, false],
    ])

    const back = await api.promote(site.id, first.version_id)
    expect([back.status, back.json()]).toMatchObject([200, { version_id: first.version_id, version_number: 1 }])
    expect((await stack.visit(site.slug)).text()).toContain('one')
    expect((await api.get(site.id)).json()).toMatchObject({ title: 'One', live_version_id: first.version_id })

    await api.promote(site.id, second.version_id)
    expect((await stack.visit(site.slug)).text()).toContain('two')
    // Who went where, from where: readable in the list itself.
    const [newest, oldest] = (await api.versions(site.id)).json()
    expect(newest.promotions).toEqual([{ at: expect.any(String), by: expect.any(String), from_version_number: 1 }])
    expect(oldest.promotions).toMatchObject([{ from_version_number: 2 }])
    expect((await api.upload(site.id, fileForm('a.html', 'three'))).json().version_number).toBe(3)
    expect((await api.promote(site.id, 'v_missing')).status).toBe(404)
  })

  test('retention drops the oldest', async () => {
    const free = apiFor(stack, await stack.createAccount('free'))
    const site = (await free.create()).json()
    const ids: string[] = []
    for (const text of ['1', '2', '3', '4'])
      ids.push((await free.upload(site.id, fileForm('a.html', text))).json().version_id)
    expect(
      (await free.versions(site.id)).json().map((version: { version_number: number }) => version.version_number),
    ).toEqual([4, 3, 2])
    expect((await free.promote(site.id, ids[0]!)).status).toBe(404)
  })

  test('every retained version has a preview address that search engines do not see', async () => {
    const site = await newSite()
    const first = (await api.upload(site.id, fileForm('a.html', 'one'))).json()
    await api.upload(site.id, fileForm('a.html', 'two'))
    const preview = await stack.fetch(first.preview_url)
    expect([preview.status, preview.text(), preview.header('x-robots-tag')]).toEqual([
      200,
      'one',
      expect.stringContaining('noindex'),
    ])
    expect((await stack.visit(`9--${site.slug}`)).status).toBe(404)
    expect((await stack.visit(`1-aaaaaaaaaaaa--${site.slug}`)).status).toBe(404)
  })
})

describe('PATCH /sites/{id}', () => {
  test('each setting reaches the address at once', async () => {
    const site = await newSite()
    await api.upload(site.id, fileForm('a.html', '<!doctype html><title>x</title><body>page</body>'))
    expect((await stack.visit(site.slug, '/deep/link')).status).toBe(404)
    expect((await api.patch(site.id, { spa_fallback: true, name: 'Label' })).json()).toMatchObject({
      spa_fallback: true,
      name: 'Label',
    })
    expect((await stack.visit(site.slug, '/deep/link')).status).toBe(200)

    const analytics = { plausible: { domain: 'example.com' } }
    expect((await api.patch(site.id, { analytics })).json()).toMatchObject({ analytics })
    expect((await stack.visit(site.slug)).text()).toContain('example.com')
    expect((await api.patch(site.id, { analytics: null })).json()).toMatchObject({ analytics: null })
    expect((await stack.visit(site.slug)).text()).not.toContain('example.com')

    expect((await api.patch(site.id, { password: 'open sesame' })).json()).toMatchObject({
      has_password: true,
      access_mode: 'password',
    })
    expect((await stack.visit(site.slug)).status).toBe(401)
    expect((await api.patch(site.id, { password: null })).json()).toMatchObject({
      has_password: false,
      access_mode: 'public',
    })
    expect((await stack.visit(site.slug)).status).toBe(200)
  })

  test('a new slug serves, the old one redirects and stays taken', async () => {
    const site = await newSite()
    await api.upload(site.id, fileForm('a.html', 'moved'))
    const renamed = (await api.patch(site.id, { slug: `${site.slug}-new` })).json()
    expect((await stack.visit(renamed.slug)).text()).toBe('moved')
    const old = await stack.visit(site.slug, '/path?q=1')
    expect([old.status, old.header('location')]).toEqual([
      301,
      `https://${renamed.slug}.${stack.sitesDomain}:${stack.httpsPort}/path?q=1`,
    ])
    expect((await api.create({ slug: site.slug })).json()).toMatchObject({ error: 'slug_taken' })
    expect((await api.patch(site.id, { slug: site.slug })).json()).toMatchObject({ slug: site.slug })
  })

  test.each([
    [{ password: '' }, 400, 'invalid_request'],
    [{ analytics: { google_analytics: { measurement_id: '<script>' } } }, 400, 'invalid_request'],
    [
      { analytics: { posthog: { project_key: 'phc_abcdefghijkl', host: 'http://insecure.test' } } },
      400,
      'invalid_request',
    ],
    [{ spa_fallback: 'yes' }, 400, 'invalid_request'],
    [{ unknown: true }, 400, 'invalid_request'],
    [{ slug: 'admin' }, 409, 'slug_reserved'],
  ])('%j is refused', async (patch, status, error) => {
    const site = await newSite()
    const answer = await api.patch(site.id, patch)
    expect([answer.status, answer.json().error]).toEqual([status, error])
  })

  test('features above the plan are 403, taking one away is not', async () => {
    const free = apiFor(stack, await stack.createAccount('free'))
    const site = (await free.create()).json()
    expect((await free.patch(site.id, { password: 'x' })).json()).toMatchObject({ error: 'plan_feature' })
    expect((await free.patch(site.id, { analytics: { plausible: { domain: 'a.test' } } })).json()).toMatchObject({
      error: 'plan_feature',
    })
    expect((await free.patch(site.id, { password: null, analytics: null })).status).toBe(200)
  })
})

test('views are counted for pages, and the site shows them soon', async () => {
  const site = await newSite()
  await api.upload(site.id, fileForm('index.html', '<p>seen</p>'))
  const visit = (from: string, target: string, agent = 'Mozilla/5.0 (a browser)') =>
    stack.visit(site.slug, target, { from, headers: { 'user-agent': agent } })
  const ofDay = watchDay()
  // One who reloads, another one, and a program that does not stop.
  for (let time = 0; time < 10; time++) await visit('203.0.113.50', `/?${time}`)
  await visit('203.0.113.51', '/')
  for (let time = 0; time < 10; time++) await visit('203.0.113.52', '/', 'curl/8.5.0')
  await visit('203.0.113.53', '/missing')
  const isCounted = async (): Promise<boolean> => ofDay(2).includes((await api.get(site.id)).json().views_30d)
  await expect.poll(isCounted, { interval: 200 }).toBe(true)
})

describe('DELETE /sites/{id}', () => {
  test('is immediate, permanent and branded', async () => {
    const site = await newSite()
    await api.upload(site.id, fileForm('a.html', 'x'))
    const deleted = await api.delete(site.id)
    expect([deleted.status, deleted.body.length]).toEqual([204, 0])
    const gone = await stack.visit(site.slug)
    expect([gone.status, gone.text().toLowerCase()]).toEqual([410, expect.stringContaining('gone')])
    expect((await api.get(site.id)).status).toBe(404)
    expect((await api.delete(site.id)).status).toBe(404)
    expect((await api.list()).json().map((other: { id: string }) => other.id)).not.toContain(site.id)
  })
})

/** Postgres stores every character but this one. */
test('U+0000 in a text or an address is refused, never a failure of ours', async () => {
  const { id } = await newSite()
  const { token } = owner
  const form = (name: string) => {
    const body = fileForm('index.html', '<p>hi</p>')
    body.append(name, 'a\0b')
    return body
  }
  const answers = [
    await api.create({ name: 'a\0b' }),
    await api.patch(id, { name: '\0' }),
    await stack.fetch('/api/v1/sites/st_%00', { token }),
    await stack.fetch('/api/v1/tokens/%00', { token, method: 'DELETE' }),
    await stack.fetch(`/api/v1/sites/${id}/upload`, { token, body: form('message') }),
    await stack.fetch('/api/v1/drops', { body: form('title') }),
    await stack.fetch('/api/v1/drops-md', { json: { markdown: 'x', title: 'a\0b' } }),
    await stack.fetch('/oauth/authorize?response_type=code&client_id=a%00b'),
  ]
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 400))
  expect(answers[0]!.json()).toMatchObject({ error: 'invalid_request', detail: expect.stringContaining('U+0000') })
})

test('the usage report counts against the caps of the plan', async () => {
  const account = await stack.createAccount('free')
  const own = apiFor(stack, account)
  const site = (await own.create()).json()
  await own.upload(site.id, fileForm('a.html', 'x'.repeat(1000)))
  expect((await stack.fetch('/api/v1/usage', { token: account.token })).json()).toMatchObject({
    plan: 'free',
    drops: { used: 1, limit: 3 },
    storage_bytes: { used: 1000, limit: 50_000_000 },
  })
})

test('the API describes itself', async () => {
  const document = (await stack.fetch('/api/v1/openapi.json')).json()
  expect(document.openapi).toMatch(/^3\.1/)
  expect(Object.keys(document.paths)).toEqual(expect.arrayContaining(['/sites', '/sites/{id}', '/drops']))
})
