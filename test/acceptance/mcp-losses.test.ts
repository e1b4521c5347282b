/** Nothing is lost, published or deleted by surprise through MCP: every refusal names what would have happened. */
import { randomBytes } from 'node:crypto'
import type { Client } from '@modelcontextprotocol/client'
import { beforeAll, describe, expect, test } from 'vitest'
import { connectWithToken, newClient, newTransport } from '../support/mcp-client.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let account: Account
let free: Account
let client: Client

beforeAll(async () => {
  stack = await sharedStack()
  ;[account, free] = await Promise.all([stack.createAccount('business'), stack.createAccount('free')])
  client = await connectWithToken(stack, account.token, 'modern')
})

const newSlug = (): string => `loss-${randomBytes(5).toString('hex')}`
const SITE = ['index.html', 'a.css', 'b.js', 'c.html'].map((path) => ({ path, content: `<p>${path}</p>` }))

/** The answer's text, with `error: ` before a refusal. */
async function say(name: string, args: Record<string, unknown>, by = client): Promise<string> {
  const result = await by.callTool({ name, arguments: args })
  const text = (result.content[0] as { text: string }).text
  return result.isError ? `error: ${text}` : text
}

async function site(): Promise<string> {
  const slug = newSlug()
  await say('service_publish_files', { slug, files: SITE })
  return slug
}

const statuses = (slug: string, paths: readonly string[]): Promise<number[]> =>
  Promise.all(paths.map(async (path) => (await stack.visit(slug, path)).status))

describe('publishing over a site', () => {
  test('one page would remove three files: they are named, nothing changes, and replace: true means it', async () => {
    const slug = await site()
    const page = { slug, content: '<h1>New</h1>' }
    const refused = await say('service_publish', page)
    expect(refused).toMatch(/^error: would_remove_files: .*3 of the files.*a\.css, b\.js, c\.html.*replace: true/)
    expect(await statuses(slug, ['/a.css', '/b.js', '/c'])).toEqual([200, 200, 200])
    expect((await stack.visit(slug)).text()).toContain('index.html')
    expect(JSON.parse(await say('service_publish', { ...page, replace: true })).version).toBe(2)
    // What is no page stays for tabs that were opened before; the version itself has one file.
    expect(await statuses(slug, ['/a.css', '/b.js', '/c'])).toEqual([200, 200, 404])
  })

  test('several files that leave one out say which; more files, or the same, need no word', async () => {
    const slug = await site()
    expect(await say('service_publish_files', { slug, files: SITE.slice(0, 3) })).toMatch(
      /would_remove_files: .*c\.html/,
    )
    const more = [...SITE, { path: 'd.txt', content: 'd' }]
    expect(JSON.parse(await say('service_publish_files', { slug, files: more })).version).toBe(2)
  })

  test('a preview of one page removes nothing, so nothing is asked', async () => {
    const slug = await site()
    const preview = { slug, content: '<h1>New</h1>', preview: 'next' }
    expect(JSON.parse(await say('service_publish', preview)).version).toBe(2)
    expect(await say('service_publish', { ...preview, if_version: 2 })).toMatch(/version_changed/)
    expect(await statuses(slug, ['/a.css', '/b.js', '/c'])).toEqual([200, 200, 200])
  })

  test('a page over a page is an update', async () => {
    const slug = newSlug()
    await say('service_publish', { slug, content: '<h1>One</h1>' })
    expect(JSON.parse(await say('service_publish', { slug, content: '# Two' })).version).toBe(2)
  })

  test('if_version: the second of two who read the same version hears of the first', async () => {
    const slug = await site()
    const publish = (by: string) =>
      say('service_publish_files', { slug, if_version: 1, files: [...SITE, { path: 'by.txt', content: by }] })
    const answers = await Promise.all([publish('one'), publish('two')])
    expect(
      answers.filter((answer) => answer.startsWith('error: version_changed: Version 2 is live, not 1')),
    ).toHaveLength(1)
    const winner = answers[0]!.startsWith('error') ? 'two' : 'one'
    expect((await stack.visit(slug, '/by.txt')).text()).toBe(winner)
    expect(await say('service_publish', { slug: newSlug(), content: 'x', if_version: 3 })).toMatch(/version_changed/)
  })

  test('two who change different files at once both keep their work', async () => {
    const slug = await site()
    const put = (path: string) => say('service_edit_files', { id: slug, put: [{ path, content: 'changed' }] })
    await Promise.all(['a.css', 'b.js', 'new.txt'].map(put))
    for (const path of ['/a.css', '/b.js', '/new.txt']) expect((await stack.visit(slug, path)).text()).toBe('changed')
    expect(await statuses(slug, ['/c'])).toEqual([200])
  })
})

describe('single files', () => {
  test('are put and deleted, and the report speaks about the whole', async () => {
    const slug = await site()
    const answer = await say('service_edit_files', {
      id: slug,
      put: [{ path: 'index.html', content: '<a href="c.html">x</a>' }],
      delete: ['c.html', 'b.js'],
      if_version: 1,
    })
    expect(JSON.parse(answer)).toMatchObject({ version: 2, files: 2 })
    expect(answer).toContain('c.html')
    // The script stays for tabs that were opened before; pages never do.
    expect(await statuses(slug, ['/', '/a.css', '/b.js', '/c'])).toEqual([200, 200, 200, 404])
  })

  test('a lone Markdown document stays one, and gets files beside it', async () => {
    const slug = newSlug()
    await say('service_publish', { slug, content: '# One' })
    await say('service_edit_files', { id: slug, put: [{ path: 'index.md', content: '# Two' }] })
    expect((await stack.visit(slug)).text()).toMatch(/<h1[^>]*>Two/)
    await say('service_edit_files', { id: slug, put: [{ path: 'notes.txt', content: 'n' }] })
    expect((await stack.visit(slug)).text()).toMatch(/<h1[^>]*>Two/)
    expect((await stack.visit(slug, '/notes.txt')).text()).toBe('n')
  })

  test.each<[string, Record<string, unknown>, RegExp]>([
    ['a file that is not there', { delete: ['other.html'] }, /not_found: There is no file "other.html"/],
    ['the landing page', { delete: ['index.html'] }, /missing_index/],
    ['everything', { delete: SITE.map(({ path }) => path) }, /Delete the drop instead/],
    ['nothing', {}, /Send files to put, or paths to delete/],
    ['a path that leaves the drop', { put: [{ path: '../x', content: '' }] }, /invalid_request: The path/],
    ['a file without content', { put: [{ path: 'x.txt' }] }, /"x.txt": send either content or upload/],
    ['an older version', { delete: ['b.js'], if_version: 7 }, /version_changed: Version 1 is live, not 7.*if_version/],
  ])('deleting or putting %s is refused, and nothing changes', async (_, change, expected) => {
    const slug = await site()
    expect(await say('service_edit_files', { id: slug, ...change })).toMatch(expected)
    expect(await statuses(slug, ['/', '/a.css', '/b.js', '/c'])).toEqual([200, 200, 200, 200])
  })
})

describe('arguments', () => {
  test.each<[string, Record<string, unknown>, RegExp]>([
    ['service_publish', { content: 'x', ifVersion: 1 }, /no argument "ifVersion". Did you mean "if_version"\?/],
    ['service_publish', { content: 'x', Slug: 'abc' }, /Did you mean "slug"/],
    ['service_publish', { content: 'x', passwrod: 'y' }, /Did you mean "password"/],
    ['service_publish', { html: 'x' }, /no argument "html". Known are content, format/],
    [
      'service_publish_files',
      { files: [{ path: 'a', contents: 'x' }] },
      /"files\[0\].contents". Did you mean "content"/,
    ],
    ['service_promote', { id: 'x', version_id: 'v_1' }, /no argument "version_id". Known are id, version/],
    ['service_settings', { id: 'x' }, /at least one setting/],
    ['service_list', { limit: 5 }, /no argument "limit"/],
    ['service_publish', { content: 'x', preview: 'PR 12' }, /: preview: use lower-case .* at most 40 characters\.$/],
    ['service_publish', { content: 'x', upload: 'upl_1' }, /either content or upload/],
    ['service_publish', { upload: 'upl_unknown' }, /not_found: There is no such upload/],
    ['service_list', { cursor: 'x' }, /cursor/],
  ])('%s %j', async (tool, args, expected) => expect(await say(tool, args)).toMatch(expected))

  test('an unknown tool comes with the nearest one', async () => {
    await expect(client.callTool({ name: 'service_publsh', arguments: {} })).rejects.toThrow(/"service_publish"/)
  })

  test.each([
    ['a data: URL', 'data:image/png;base64,iVBORw0KGgo=', /data: URL/],
    ['missing padding', 'iVBORw0KGgo', /not valid base64/],
    ['the other alphabet', 'iVBOR-0KGgo_', /not valid base64/],
    ['text', 'Hello, world!', /not valid base64/],
    ['bits after the end', 'iVBORw0KGgp=', /not valid base64/],
  ])('base64 that is %s is an error, not a corrupt file', async (_, content, expected) => {
    const files = [...SITE, { path: 'logo.png', content, encoding: 'base64' }]
    expect(await say('service_publish_files', { slug: newSlug(), files })).toMatch(expected)
  })

  test('base64 with line breaks is what it says', async () => {
    const bytes = randomBytes(300)
    const content = bytes.toString('base64').replaceAll(/.{76}/g, '$&\r\n')
    const slug = newSlug()
    await say('service_publish_files', { slug, files: [...SITE, { path: 'x.bin', content, encoding: 'base64' }] })
    expect((await stack.visit(slug, '/x.bin')).body.equals(bytes)).toBe(true)
  })
})

describe('secrets', () => {
  test('are refused before anything is public, by their name, and published when the person wants it', async () => {
    const files = [...SITE, { path: '.npmrc', content: 'token' }]
    const slug = newSlug()
    expect(await say('service_publish_files', { slug, files })).toMatch(
      /secret_files: .*"\.npmrc".*allow_secrets: true/,
    )
    expect((await stack.visit(slug)).status).toBe(404)
    await say('service_publish_files', { slug, files, allow_secrets: true })
    expect(await statuses(slug, ['/.npmrc'])).toEqual([200])
    const other = await site()
    const put = [{ path: '.env', content: 'KEY=1' }]
    expect(await say('service_edit_files', { id: other, put })).toMatch(/secret_files/)
    expect(await statuses(other, ['/.env', '/'])).toEqual([404, 200])
  })
})

describe('content that is sent ahead', () => {
  const address = async (name: string, by = client) => JSON.parse(await say('service_upload', { name }, by))
  const put = (url: string, body: Buffer | string) => stack.fetch(url, { method: 'PUT', body: Buffer.from(body) })

  test('a page or a part of a site is published by the id of its upload', async () => {
    const { upload, put_url } = await address('page.html')
    expect(await say('service_publish', { upload })).toMatch(/Nothing has arrived.*PUT/)
    const sent = await put(put_url, '<h1>Sent ahead</h1>')
    expect(sent.json()).toMatchObject({ upload, size: 19 })
    const { slug } = JSON.parse(await say('service_publish', { upload }))
    expect((await stack.visit(slug)).text()).toContain('<h1>Sent ahead</h1>')
  })

  test('an address takes one file, of its plan’s size, from any holder, and nothing else', async () => {
    const { put_url, max_bytes } = await address('a.bin')
    expect(max_bytes).toBe(500_000_000)
    expect((await put(put_url, 'first')).status).toBe(201)
    expect((await put(put_url, 'second')).status).toBe(409)
    for (const wrong of [put_url.slice(0, -3), put_url.replace('upl_', 'upl_x'), `${put_url}x`])
      expect((await put(wrong, 'x')).status).toBe(404)
    const small = await connectWithToken(stack, free.token, 'modern')
    const theirs = await address('b.bin', small)
    expect(theirs.max_bytes).toBe(10_000_000)
    expect((await put(theirs.put_url, Buffer.alloc(10_000_001))).status).toBe(413)
    // What someone else sent is not there for this account.
    expect(await say('service_publish', { upload: theirs.upload })).toMatch(/not_found/)
  })

  test('the plan’s cap holds for what is in the message, in words', async () => {
    const small = await connectWithToken(stack, free.token, 'modern')
    const files = [...SITE, { path: 'big.txt', content: 'x'.repeat(10_000_001) }]
    expect(await say('service_publish_files', { files }, small)).toMatch(/upload_too_large: .*larger than 10 MB/)
  })
})

describe('deleting', () => {
  /** A client that can ask its person, who answers like this. */
  async function asking(action: 'accept' | 'decline' | 'cancel', yes: boolean) {
    const asked: string[] = []
    const asker = newClient('modern', { capabilities: { elicitation: { form: {} } } })
    asker.setRequestHandler('elicitation/create', (request) => {
      asked.push(request.params.message)
      return action === 'accept' ? { action, content: { delete: yes } } : { action }
    })
    await asker.connect(newTransport(stack, { authProvider: { token: async () => account.token } }))
    return { asker, asked }
  }

  test.each([
    ['accept', true, 410],
    ['accept', false, 200],
    ['decline', false, 200],
    ['cancel', false, 200],
  ] as const)('where the client can ask, the person decides: %s %s', async (action, yes, status) => {
    const slug = await site()
    const { asker, asked } = await asking(action, yes)
    const answer = await say('service_delete', { id: slug }, asker)
    expect(asked).toEqual([expect.stringContaining(`Delete "${slug}"`)])
    expect(answer).toMatch(status === 410 ? /"deleted":true/ : /not_confirmed/)
    expect(await statuses(slug, ['/'])).toEqual([status])
  })

  test('where it cannot, the call is the decision', async () => {
    const slug = await site()
    expect(await say('service_delete', { id: slug })).toMatch(/"deleted":true/)
  })
})

test('a long publish says how far it is', async () => {
  const steps: { progress: number; total?: number }[] = []
  await client.callTool(
    { name: 'service_publish_files', arguments: { slug: newSlug(), files: SITE } },
    { onprogress: (step) => void steps.push(step) },
  )
  expect(steps.map(({ progress, total }) => `${progress}/${total}`)).toEqual(['1/5', '2/5', '3/5', '4/5', '5/5'])
})

describe('resources', () => {
  test('guides, and the facts, the report and the files of a drop', async () => {
    const slug = await site()
    await say('service_edit_files', {
      id: slug,
      put: [
        { path: 'index.html', content: '<img src="gone.png">' },
        { path: 'x.bin', content: Buffer.alloc(10).toString('base64'), encoding: 'base64' },
      ],
    })
    const { resources } = await client.listResources()
    const uris = resources.map((resource) => resource.uri)
    expect(uris).toContain('dropway://guides/publishing')
    expect(uris).toContain(`dropway://drops/${slug}/report`)
    const { resourceTemplates } = await client.listResourceTemplates()
    expect(resourceTemplates.map((template) => template.uriTemplate)).toContain('dropway://drops/{slug}/files/{+path}')
    const read = async (uri: string): Promise<{ text?: string; blob?: string }> =>
      (await client.readResource({ uri })).contents[0]!
    expect((await read('dropway://guides/publishing')).text).toContain('service_edit_files')
    // The docs, as people read them, with the facts of this service.
    const rules = (await read('dropway://guides/redirects-and-headers')).text!
    expect(rules).toMatch(/^# Redirects and headers\n/)
    expect((await stack.fetch('/docs/redirects-and-headers')).text()).toContain('/blog/:slug      /posts/:slug')
    expect(rules).toContain('/blog/:slug      /posts/:slug')
    expect((await read('dropway://guides/quick-start')).text).toContain(`${stack.baseUrl}/api/v1/drops`)
    expect((await read(`dropway://drops/${slug}`)).text).toContain('"a.css"')
    expect((await read(`dropway://drops/${slug}/report`)).text).toContain('gone.png')
    expect((await read(`dropway://drops/${slug}/files/a.css`)).text).toBe('<p>a.css</p>')
    expect((await read(`dropway://drops/${slug}/files/x.bin`)).blob).toBe(Buffer.alloc(10).toString('base64'))
  })

  test.each(['dropway://guides/none', 'dropway://drops/nobodys-drop', 'file:///etc/passwd', 'dropway://drops/%zz'])(
    '%s is not found',
    async (uri) => await expect(client.readResource({ uri })).rejects.toThrow(/not found/i),
  )

  test('what belongs to someone else is not found', async () => {
    const slug = await site()
    const stranger = await connectWithToken(stack, free.token, 'modern')
    await expect(stranger.readResource({ uri: `dropway://drops/${slug}/files/a.css` })).rejects.toThrow(/not found/i)
  })
})
