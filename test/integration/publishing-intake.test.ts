import { createHash } from 'node:crypto'
import zlib from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Intake, PreparedVersion, Recompressed } from '../../control/drops/publishing/contract.ts'
import { encodeManifest, type ManifestFile } from '../../shared/contracts/manifest.ts'
import { IS_DEEP } from '../support/depth.ts'
import { chunksOf, startPublishing, type PublishingFixture } from '../support/publishing.ts'

const OWNER = { kind: 'organisation', id: 'org' } as const

const CAP_BYTES = 10_000_000

let fixture: PublishingFixture
beforeAll(async () => {
  fixture = await startPublishing()
})
afterAll(() => fixture.close())

async function publish(
  fill: (intake: Intake) => Promise<void>,
  options: { capBytes?: number; base?: string } = {},
): Promise<PreparedVersion> {
  const intake = fixture.publishing.receive({ owner: OWNER, capBytes: CAP_BYTES, ...options })
  try {
    await fill(intake)
    return await intake.finish()
  } finally {
    await intake.abort()
  }
}

function publishFiles(
  files: Record<string, string | Buffer>,
  options: { base?: string } = {},
): Promise<PreparedVersion> {
  return publish(async (intake) => {
    for (const [path, content] of Object.entries(files)) await intake.addFile(path, chunksOf(content))
  }, options)
}

async function filesOf(prepared: PreparedVersion): Promise<Map<string, ManifestFile>> {
  return new Map((await fixture.publishing.readManifest(prepared.manifestHash)).files)
}

function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

describe('a single file', () => {
  test('a page is served as written, as the landing page', async () => {
    const html = '<!doctype html><title>Hello</title><p>world'
    const prepared = await publish((intake) => intake.addSingle('My page.HTM', chunksOf(html), {}))
    expect(prepared).toMatchObject({ byteSize: html.length, fileCount: 1, title: 'Hello', report: { warnings: [] } })
    const file = (await filesOf(prepared)).get('index.html')!
    expect(file).toMatchObject({ type: 'text/html; charset=utf-8', injection: { head: 35, body: html.length } })
    expect((await fixture.publishing.readBlob(prepared.landingHash)).toString()).toBe(html)
    for (const hash of prepared.blobs()) expect(await fixture.blobs.has(hash)).toBe(true)
  })

  test('Markdown is rendered, and its source is kept', async () => {
    const prepared = await publish((intake) => intake.addSingle('notes.md', chunksOf('# Notes\n\ntext'), {}))
    const file = (await filesOf(prepared)).get('index.html')!
    expect(prepared).toMatchObject({ byteSize: 13, fileCount: 1, title: 'Notes' })
    expect(file.source).toMatchObject({ path: 'notes.md', size: 13 })
    expect((await fixture.blobs.read(file.source!.hash)).toString()).toBe('# Notes\n\ntext')
    expect(prepared.blobs()).toContain(file.source!.hash)
  })

  test.each([
    ['cat.png', 'PNG', '<img src="cat.png" alt="cat">'],
    ['film.mp4', 'MP4', '<video src="film.mp4" controls'],
    ['song.mp3', 'MP3', '<audio src="song.mp3" controls'],
    ['c v.pdf', '%PDF', '<object data="c%20v.pdf" type="application/pdf"'],
    ['notes.txt', 'a < b', '<pre tabindex="0">a &lt; b</pre>'],
  ])('%s gets a page that shows it, and stays beside it', async (name, content, markup) => {
    const prepared = await publish((intake) => intake.addSingle(name, chunksOf(content), {}))
    const files = await filesOf(prepared)
    expect([...files.keys()].sort()).toEqual([name, 'index.html'].sort())
    const page = files.get('index.html')!
    expect((await fixture.blobs.read(page.hash)).toString()).toContain(markup)
    expect((await fixture.blobs.read(files.get(name)!.hash)).toString()).toBe(content)
    expect(page.source).toMatchObject({ path: name, hash: files.get(name)!.hash })
    expect(prepared).toMatchObject({ byteSize: content.length, fileCount: 1, title: name.replace(/\..*/, '') })
  })

  test('a document that looks like a secret is refused as a whole', async () => {
    await expect(publish((intake) => intake.addSingle('.env.txt', chunksOf('KEY=1'), {}))).rejects.toMatchObject({
      code: 'secret_files',
    })
  })

  test('without an account a document is not taken', async () => {
    const intake = fixture.publishing.receive({ owner: { kind: 'network', ip: '192.0.2.1' }, capBytes: CAP_BYTES })
    await expect(intake.addSingle('cat.png', chunksOf('x'), {})).rejects.toThrow('needs an account')
    await intake.abort()
  })

  test.each([
    ['a page', 'a.html', '<p>x', ['index.html']],
    ['a document', 'a.txt', 'x', ['a.txt', 'index.html']],
  ])('%s may turn out to be all there is', async (_what, name, content, paths) => {
    const prepared = await publish(async (intake) => (await intake.addUnnamed(chunksOf(content))).alone(name))
    expect([...(await filesOf(prepared)).keys()]).toEqual(paths)
  })

  test('a title that comes after the file counts', async () => {
    const intake = fixture.publishing.receive({ owner: OWNER, capBytes: CAP_BYTES })
    await intake.addSingle('notes.markdown', chunksOf('# Notes'), {})
    expect((await intake.finish({ title: 'Given' })).title).toBe('Given')
  })

  test.each(['a.css', 'a.php', 'html', '.html', 'a.html.exe', 'a.zip'])('%s is not taken', async (name) => {
    await expect(publish((intake) => intake.addSingle(name, chunksOf('x'), {}))).rejects.toMatchObject({
      status: 400,
      code: 'unsupported_file_type',
    })
  })

  test.each([
    ['an empty file', (intake: Intake) => intake.addSingle('a.html', chunksOf(''), {})],
    ['nothing at all', async () => undefined],
    ['a name with a line break', (intake: Intake) => intake.addSingle('a\n.html', chunksOf('x'), {})],
    [
      'two files',
      async (intake: Intake) => {
        await intake.addSingle('a.html', chunksOf('x'), {})
        await intake.addSingle('b.html', chunksOf('x'), {})
      },
    ],
  ])('%s is refused', async (_, fill) => {
    const before = await fixture.leftovers()
    await expect(publish(fill)).rejects.toMatchObject({ status: 400, code: 'invalid_request' })
    expect(await fixture.leftovers()).toEqual(before)
  })

  test('hostile Markdown is refused before it is rendered', async () => {
    const publishing = publish((intake) => intake.addSingle('bad.md', chunksOf(`# a\n\n${'[a]('.repeat(30_000)}`), {}))
    await expect(publishing).rejects.toMatchObject({
      status: 400,
      code: 'invalid_request',
      message: expect.stringContaining('line 3'),
    })
  })

  test('Markdown that takes longer than its time is ended, and the next document is rendered', async () => {
    // Several times what a thread needs to load the renderer, and an eighth of what the document takes on a slow machine.
    const impatient = await startPublishing({ markdownTimeoutMs: 1500 })
    try {
      const intake = impatient.publishing.receive({ owner: OWNER, capBytes: CAP_BYTES })
      await intake.addSingle('bad.md', chunksOf('- a\n'.repeat(100_000)), {})
      await expect(intake.finish()).rejects.toMatchObject({
        status: 400,
        code: 'invalid_request',
        message: expect.stringContaining('too long'),
      })
      await intake.abort()
      expect(await impatient.leftovers()).toEqual([])
      const next = impatient.publishing.receive({ owner: OWNER, capBytes: CAP_BYTES })
      await next.addSingle('good.md', chunksOf('# Good'), {})
      expect((await next.finish()).title).toBe('Good')
    } finally {
      await impatient.close()
    }
  })
})

describe('large Markdown', () => {
  const items = (count: number): string => '- an *item* with a [link](/x)\n'.repeat(count)
  const paragraphs = (count: number): string => `${'A long line of prose. '.repeat(100)}\n\n`.repeat(count)
  const publishDocument = (text: string): Promise<PreparedVersion> =>
    publish((intake) => intake.addSingle('large.md', chunksOf(text), {}))
  /** The list is more than a thread of ordinary size can hold, and takes ten seconds of a core. */
  const large = IS_DEEP
    ? { text: items(20_000), part: /<li>/g, parts: 20_000 }
    : { text: paragraphs(240), part: /<p>/g, parts: 240 }

  test('is rendered by a thread with more memory', async () => {
    const { landingHash } = await publishDocument(large.text)
    expect((await fixture.publishing.readBlob(landingHash)).toString().match(large.part)).toHaveLength(large.parts)
  })

  test('what does not fit is told to be too large', async () => {
    await expect(publishDocument(items(110_000))).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('too large'),
    })
  })
})

describe('files with paths', () => {
  test('types, variants, hashed names, rules and a report', async () => {
    const script = 'const greeting = "hello";\n'.repeat(200)
    const prepared = await publishFiles({
      'index.html':
        '<title>Site</title><script type="module" src="assets/app-BX3k9f2a.js"></script><img src="nope.png">',
      'assets/app-BX3k9f2a.js': script,
      'pic.png': Buffer.alloc(3000, 7),
      _redirects: '/old /new 301\nnonsense\n',
      _headers: '/*\n  X-A: 1\n',
    })
    const manifest = await fixture.publishing.readManifest(prepared.manifestHash)
    expect(prepared).toMatchObject({ fileCount: 5, title: 'Site' })
    expect(manifest.redirects).toEqual([{ from: '/old', to: '/new', status: 301, force: false, line: 1 }])
    expect(manifest.headers).toEqual([{ from: '/*', set: [['x-a', '1']], line: 1 }])
    expect(manifest.unserved.map(([path]) => path)).toEqual(['_headers', '_redirects'])
    const files = new Map(manifest.files)
    const app = files.get('assets/app-BX3k9f2a.js')!
    expect(app).toMatchObject({ immutable: true, type: 'text/javascript; charset=utf-8' })
    expect(zlib.brotliDecompressSync(await fixture.blobs.read(app.encodings!.br!.hash)).toString()).toBe(script)
    expect(zlib.gunzipSync(await fixture.blobs.read(app.encodings!.gzip!.hash)).toString()).toBe(script)
    expect(files.get('pic.png')).toEqual({ hash: expect.any(String), size: 3000, type: 'image/png' })
    expect(prepared.report.warnings.map(({ code, path, line }) => ({ code, path, line }))).toEqual([
      { code: 'invalid_rule', path: '_redirects', line: 2 },
      { code: 'missing_file', path: 'index.html', line: undefined },
    ])
  })

  test('the links of equal pages are those of the folder that each is in', async () => {
    const page = '<!doctype html><title>Equal</title><img src="pic.png"><script src="app-BX3k9f2a.js"></script>'
    const pages = { 'index.html': page, 'old/index.html': page }
    const files = (folder: string) => ({ [`${folder}pic.png`]: 'png', [`${folder}app-BX3k9f2a.js`]: 'let a = 1' })
    const missing = async (site: Record<string, string>, base?: string) => {
      const prepared = await publishFiles(site, base === undefined ? {} : { base })
      expect(prepared.title).toBe('Equal')
      return {
        prepared,
        told: prepared.report.warnings.map(({ path, message }) => [path, /old.(?:pic|app)/.test(message)]),
      }
    }
    expect((await missing({ ...pages, ...files(''), ...files('old/') })).told).toEqual([])
    const beside = await missing({ ...pages, ...files('old/') })
    expect(beside.told).toEqual([1, 2].map(() => ['index.html', false]))
    const { prepared, told } = await missing({ ...pages, ...files('') })
    expect(told).toEqual([1, 2].map(() => ['old/index.html', true]))
    // What is remembered of them, too.
    const again = await missing({ ...pages, ...files(''), 'new.txt': 'new' }, prepared.manifestHash)
    expect(again.told).toEqual(told)
  })

  test('names that people write are asked for again, whatever is loaded', async () => {
    const names = ['report-Q4-final.pdf', 'holiday-IMG_2041.jpg', 'invoice-INV00042.pdf', 'CV-Max_2026.pdf'].concat(
      ...['price-list-Q4-final.js', 'assets/app-20240501.js', 'assets/photo-20240101.jpg'],
    )
    const page = names
      .filter((name) => name.endsWith('.js'))
      .map((name) => `<script type=module src="${name}"></script>`)
    const site = Object.fromEntries([['index.html', page.join('')], ...names.map((name) => [name, `of ${name}`])])
    const files = await filesOf(await publishFiles(site))
    expect([...files.values()].filter(({ immutable }) => immutable)).toEqual([])
  })

  test('what no visitor can ask for is named and not counted', async () => {
    const prepared = await publishFiles({
      'index.html': '<p>x',
      '.DS_Store': 'clutter',
      'img/Thumbs.db': 'clutter',
      '__MACOSX/._index.html': 'clutter',
      '.dropway/unlock': 'ours',
      '.well-known/acme-challenge/token': 'ours',
      '.well-known/security.txt': 'theirs',
    })
    expect([...(await filesOf(prepared)).keys()]).toEqual(['.well-known/security.txt', 'index.html'])
    expect(prepared).toMatchObject({ fileCount: 2, byteSize: 10 })
    expect(prepared.report.warnings.map(({ code, path }) => [code, path])).toEqual([
      ['never_served', '.DS_Store'],
      ['never_served', 'img/Thumbs.db'],
      ['never_served', '__MACOSX/._index.html'],
      ['never_served', '.dropway/unlock'],
      ['never_served', '.well-known/acme-challenge/token'],
    ])
  })

  test('a piece of a video is no TypeScript', async () => {
    const files = await filesOf(
      await publishFiles({
        'index.html': '<p>x',
        'a.ts': 'let a = 1',
        'b.ts': Buffer.alloc(376, 0x47).fill(0xff, 1, 188),
      }),
    )
    expect(files.get('a.ts')!.type).toBe('text/plain; charset=utf-8')
    expect(files.get('b.ts')!.type).toBe('video/mp2t')
  })

  test('names may follow their bytes', async () => {
    const prepared = await publish(async (intake) => {
      const first = await intake.addUnnamed(chunksOf('<p>1'))
      const second = await intake.addUnnamed(chunksOf('two'))
      second.name('b.txt')
      first.name('index.html')
    })
    expect([...(await filesOf(prepared)).keys()]).toEqual(['b.txt', 'index.html'])
  })

  test.each(['../x', '/x', 'a\\b', 'a//b', 'C:x', ''])('the path %j is refused', async (path) => {
    expect(() => fixture.publishing.checkPaths([path])).toThrow(expect.objectContaining({ status: 400 }))
    await expect(publishFiles({ 'index.html': 'x', [path]: 'y' })).rejects.toMatchObject({
      status: 400,
      code: 'invalid_request',
    })
  })

  test('a path that appears twice is refused', async () => {
    const twice = publish(async (intake) => {
      await intake.addFile('index.html', chunksOf('1'))
      await intake.addFile('index.html', chunksOf('2'))
    })
    await expect(twice).rejects.toMatchObject({ status: 400, message: expect.stringContaining('twice') })
  })

  test('without index.html it says where one is', async () => {
    await expect(publishFiles({ 'dist/index.html': 'x', 'package.json': '{}' })).rejects.toMatchObject({
      code: 'missing_index',
      message: expect.stringContaining('"dist/"'),
    })
  })

  test('the cap counts the upload as a whole, while it is read', async () => {
    const before = await fixture.leftovers()
    let sent = 0
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) {
        sent += 100_000
        yield Buffer.alloc(100_000, sent % 251)
      }
    }
    const tooMuch = publish(
      async (intake) => {
        await intake.addFile('index.html', chunksOf(Buffer.alloc(600_000, 'a')))
        await intake.addFile('b.txt', endless())
      },
      { capBytes: 1_000_000 },
    )
    await expect(tooMuch).rejects.toMatchObject({ status: 413, code: 'upload_too_large' })
    expect(sent).toBeLessThanOrEqual(600_000)
    expect(await fixture.leftovers()).toEqual(before)
  })

  test('a failing upload takes back only what no one else stored meanwhile', async () => {
    const shared = 'shared between two uploads'
    const failing = fixture.publishing.receive({ owner: OWNER, capBytes: CAP_BYTES })
    await failing.addFile('a.txt', chunksOf(shared))
    await failing.addFile('b.txt', chunksOf('only in the failing upload'))
    const prepared = await publishFiles({ 'index.html': 'x', 'a.txt': shared })
    await failing.abort()
    for (const hash of prepared.blobs()) expect(await fixture.blobs.has(hash)).toBe(true)
    expect(await fixture.blobs.has(sha256('only in the failing upload'))).toBe(false)
  })
})

describe('charsets', () => {
  test.each([
    ['declared otherwise', Buffer.from('<meta charset="iso-8859-1"><p>\xe9', 'latin1'), 'text/html'],
    ['declared otherwise although it is ASCII', Buffer.from('<meta charset="windows-1251"><p>a'), 'text/html'],
    ['not declared and not UTF-8', Buffer.from('<p>\xe9', 'latin1'), 'text/html'],
    ['UTF-8, declared or not', Buffer.from('<p>é'), 'text/html; charset=utf-8'],
  ])('a page that is %s', async (_, bytes, type) => {
    expect((await filesOf(await publishFiles({ 'index.html': bytes }))).get('index.html')!.type).toBe(type)
  })

  const page = '<!doctype html><title>Grüße</title><meta charset="%s"><p>語<a href="/lost">a</a></p>'
  const utf16 = Buffer.from(`\ufeff${page.replace('%s', 'utf-16')}`, 'utf16le')
  const japanese = page.replace('%s', 'ISO-2022-JP').replace('Grüße', 'Gr')
  test.each([
    ['UTF-16, little end first', utf16, 'Grüße'],
    ['UTF-16, big end first', Buffer.from(utf16).swap16(), 'Grüße'],
    // 語 is "8l" between two escapes; 社 would be "<R".
    ['ISO-2022-JP', Buffer.from(japanese.replace('語', '\x1b$B8l<R\x1b(B'), 'latin1'), 'Gr'],
  ])('a page in %s is served as UTF-8, and what was uploaded is kept', async (_, bytes, title) => {
    const prepared = await publishFiles({ 'index.html': bytes })
    const { report, byteSize } = prepared
    expect({ title: prepared.title, byteSize }).toEqual({ title, byteSize: bytes.length })
    expect(report.warnings.map(({ code }) => code)).toEqual(['missing_page'])
    const { type, hash, source, injection } = (await filesOf(prepared)).get('index.html')!
    const served = await fixture.blobs.read(hash)
    expect({ type, served: served.toString().slice(0, 21) }).toEqual({
      type: 'text/html; charset=utf-8',
      served: `\ufeff<!doctype html><titl`,
    })
    expect(served.toString()).toMatch(/<p>語社?<a href/)
    expect(served.subarray(injection!.body!).length).toBe(0)
    expect(source).toEqual({ path: 'index.html', hash: sha256(bytes), size: bytes.length })
    expect(prepared.landingHash).toBe(hash)
    expect(prepared.blobs()).toEqual(expect.arrayContaining([hash, sha256(bytes)]))

    const again = await publish((intake) => intake.addStored('index.html', sha256(bytes), bytes.length), {
      base: prepared.manifestHash,
    })
    expect(madeOf(again)).toEqual(madeOf(prepared))
  })

  test('an upload that fails takes a converted page back', async () => {
    const own = await startPublishing()
    try {
      const intake = own.publishing.receive({ owner: OWNER, capBytes: CAP_BYTES })
      await intake.addFile('index.html', chunksOf(utf16))
      await intake.addFile('_headers', chunksOf('x'.repeat(1_000_001)))
      await expect(intake.finish()).rejects.toMatchObject({ status: 400 })
      await intake.abort()
      expect(await own.leftovers()).toEqual([])
    } finally {
      await own.close()
    }
  })

  test.each([
    ['UTF-16', Buffer.from('\ufeff# Grüße', 'utf16le')],
    ['UTF-8 with a mark', Buffer.from('\ufeff# Grüße')],
  ])('Markdown in %s', async (_, bytes) => {
    const prepared = await publish((intake) => intake.addSingle('a.md', chunksOf(bytes), {}))
    expect(prepared).toMatchObject({ title: 'Grüße', byteSize: bytes.length })
    expect((await fixture.publishing.readBlob(prepared.landingHash)).toString()).toContain('>Grüße<a class="anchor"')
  })
})

describe('changed files only', () => {
  test('what the live version knows is taken over, and the manifest is the same as if all had been sent', async () => {
    const site = {
      'index.html': `<title>T</title>${'<p>text</p>'.repeat(100)}`,
      'a.js': 'let a = 1;\n'.repeat(100),
      'b.css': 'a{}',
    }
    const first = await publishFiles(site)
    const changed = { ...site, 'b.css': 'b{}' }
    const whole = await publishFiles(changed)
    const partial = await publish(
      async (intake) => {
        for (const [path, file] of await filesOf(first))
          if (path !== 'b.css') await intake.addStored(path, file.hash, file.size)
        await intake.addFile('b.css', chunksOf('b{}'))
      },
      { base: first.manifestHash },
    )
    expect(madeOf(partial)).toEqual(madeOf(whole))
  })

  test.each([
    ['A renamed page', { 'index.html': 'x', 'a.html': '<p>a' }, { 'index.html': 'x', 'b.html': '<p>a' }],
    ['A page that is now a text', { 'index.html': 'x', 'a.html': '<p>a' }, { 'index.html': 'x', 'a.txt': '<p>a' }],
    ['Another name of the same Markdown', { 'index.markdown': '# a' }, { 'index.md': '# a' }],
    ['Another text under the same name', { 'index.md': '# a' }, { 'index.md': '# b' }],
  ] as readonly [string, Record<string, string>, Record<string, string>][])(
    '%s is told in the manifest as if there were no live version',
    async (_, before, after) => {
      const { manifestHash: base } = await publishFiles(before)
      expect(madeOf(await publishFiles(after, { base }))).toEqual(madeOf(await publishFiles(after)))
    },
  )

  test('the report tells of links on unchanged pages, whose target was taken away', async () => {
    const site = { 'index.html': '<a href="/a">a</a>', 'a.html': '<a href="/b">b</a><img src="c.png">', 'b.html': 'b' }
    const whole = await publishFiles({ ...site, 'c.png': 'png' })
    expect(whole.report.warnings).toEqual([])
    const partial = await publish(
      async (intake) => {
        for (const [path, file] of await filesOf(whole))
          if (path !== 'c.png' && path !== 'b.html') await intake.addStored(path, file.hash, file.size)
      },
      { base: whole.manifestHash },
    )
    expect(partial.report.warnings.map(({ code, path }) => [code, path])).toEqual([
      ['missing_page', 'a.html'],
      ['missing_file', 'a.html'],
    ])
  })

  test.each(['stored', 'live'])('the size of a %s file cannot be made up', async (known) => {
    const first = await publishFiles({ 'index.html': '<p>x', 'a.bin': Buffer.alloc(5000, known) })
    const { hash } = (await filesOf(first)).get('a.bin')!
    for (const size of [1, 5001]) {
      const lying = publish(
        async (intake) => {
          await intake.addFile('index.html', chunksOf('<p>x'))
          await intake.addStored('a.bin', hash, size)
        },
        known === 'live' ? { base: first.manifestHash } : {},
      )
      await expect(lying).rejects.toMatchObject({ status: 400, message: expect.stringContaining('has 5000') })
    }
  })

  test('a file that never arrived is named', async () => {
    const missing = publish(async (intake) => {
      await intake.addFile('index.html', chunksOf('x'))
      await intake.addStored('lost.txt', 'f'.repeat(64), 5)
    })
    await expect(missing).rejects.toMatchObject({ status: 400, message: expect.stringContaining('lost.txt') })
  })
})

describe('what is compressed when', () => {
  const script = (bytes: number): string => 'const greeting = "hello";\n'.repeat(bytes / 26)

  test('the landing page and what it loads before the version goes live, the rest right after', async () => {
    const prepared = await publishFiles({
      'index.html': `<link rel=stylesheet href="css/a.css"><script src="app.js"></script><a href="other.html">`,
      'css/a.css': `@import "b.css";/*${'a'.repeat(5000)}*/`,
      'css/b.css': `b{c:url(d.svg)}/*${'b'.repeat(800_000)}*/`,
      'css/d.svg': `<svg xmlns="http://www.w3.org/2000/svg"><!--${'d'.repeat(900_000)}--></svg>`,
      'app.js': script(3_100_000),
      'other.html': `<p>${'o'.repeat(1_400_000)}`,
      'later.js': script(3_200_000),
    })
    const withVariants = async (manifestHash: string): Promise<string[]> =>
      (await fixture.publishing.readManifest(manifestHash)).files
        .filter(([, file]) => file.encodings?.br && file.encodings.gzip)
        .map(([path]) => path)
    expect(await withVariants(prepared.manifestHash)).toEqual(['app.js', 'css/a.css', 'css/b.css', 'css/d.svg'])
    const compressed = (await lastOf(fixture.publishing.compress(prepared.manifestHash, null)))!
    expect(await withVariants(compressed.manifestHash)).toEqual([
      'app.js',
      'css/a.css',
      'css/b.css',
      'css/d.svg',
      'later.js',
      'other.html',
    ])
    expect(await lastOf(fixture.publishing.compress(compressed.manifestHash, null))).toBeUndefined()
  })

  test('a landing page that begins to load what is already live without variants', async () => {
    const files = { 'index.html': '<p>1', 'app.js': script(3_500_000) }
    const first = await publishFiles(files)
    expect((await filesOf(first)).get('app.js')!.encodings).toBeUndefined()
    const second = await publishFiles(
      { ...files, 'index.html': '<script src=app.js></script>' },
      { base: first.manifestHash },
    )
    expect((await filesOf(second)).get('app.js')!.encodings).toMatchObject({ br: {}, gzip: {} })
  })
})

/** A version, whatever it was made from. */
function madeOf({ blobs, ...prepared }: PreparedVersion) {
  return { ...prepared, changes: undefined, blobs: blobs() }
}

/** The manifest that all of it is in, with what all of it changes; undefined where nothing got smaller. */
async function lastOf(parts: AsyncIterable<Recompressed>): Promise<Recompressed['smaller']> {
  const all: Recompressed[] = []
  for await (const part of parts) all.push(part)
  expect(all.map(({ isWhole }) => isWhole)).toEqual([...all.slice(1).map(() => false), true])
  const smaller = all.flatMap((part) => part.smaller ?? [])
  const last = smaller.at(-1)
  const [added, gone] = [smaller.flatMap((part) => part.added), smaller.flatMap((part) => part.gone)]
  return last && { ...last, added, gone }
}

/** What is needed after a change of what was needed before. */
function changed(before: readonly string[], { added, gone }: { added: readonly string[]; gone: readonly string[] }) {
  return new Set([...before, ...added].filter((hash) => !gone.includes(hash)))
}

describe('refining', () => {
  test('serves the same bytes in smaller variants, and a second time there is nothing to do', async () => {
    const text = Array.from(
      { length: 3000 },
      (_, index) => `line ${index * 7919} of a text, ${index % 13} words\n`,
    ).join('')
    const prepared = await publishFiles({ 'index.html': '<p>x', 'a.txt': text })
    const refined = (await lastOf(fixture.publishing.refine(prepared.manifestHash, null)))!
    const [before, after] = [await filesOf(prepared), await filesOf({ ...prepared, ...refined })]
    expect(after.get('a.txt')!.encodings!.br!.size).toBeLessThan(before.get('a.txt')!.encodings!.br!.size)
    expect({ ...after.get('a.txt'), encodings: 0 }).toEqual({ ...before.get('a.txt'), encodings: 0 })
    expect(changed(prepared.blobs(), refined)).toEqual(new Set(await namedBy(refined.manifestHash)))
    expect(
      zlib.brotliDecompressSync(await fixture.blobs.read(after.get('a.txt')!.encodings!.br!.hash)).toString(),
    ).toBe(text)
    expect(await lastOf(fixture.publishing.refine(refined.manifestHash, null))).toBeUndefined()
  })

  test('takes what has not changed from a version that was refined', async () => {
    const lines = (seed: number): string =>
      Array.from({ length: 500 }, (_, index) => `line ${index * seed} of a text, ${index % 13} words\n`).join('')
    const site = { 'index.html': '<p>x', 'same.txt': lines(7919), 'changed.txt': lines(104_729) }
    const first = await publishFiles(site)
    const firstRefined = (await lastOf(fixture.publishing.refine(first.manifestHash, null)))!
    // What was refined must be served as it is in that manifest, so a mark in it shows where the new one has it from.
    const marked = await markVariant(firstRefined.manifestHash, 'same.txt')
    const second = await publishFiles({ ...site, 'changed.txt': lines(1_299_709) })
    const refined = (await lastOf(fixture.publishing.refine(second.manifestHash, marked.manifestHash)))!
    const after = await filesOf({ ...second, ...refined })
    expect(after.get('same.txt')!.encodings!.br).toEqual(marked.variant)
    expect(changed(second.blobs(), refined)).toEqual(new Set(await namedBy(refined.manifestHash)))
    expect(after.get('changed.txt')!.encodings!.br!.size).toBeLessThan(
      (await filesOf(second)).get('changed.txt')!.encodings!.br!.size,
    )
  })

  test('of a version over one that was refined only what changed is looked at again', async () => {
    const lines = (seed: number): string =>
      Array.from({ length: 500 }, (_, index) => `line ${index * seed} of a text, ${index % 13} words\n`).join('')
    const site = { 'index.html': '<p>x', 'same.txt': lines(15_485_863), 'changed.txt': lines(32_452_843) }
    const first = await publishFiles(site)
    const base = (await lastOf(fixture.publishing.refine(first.manifestHash, null)))!.manifestHash
    const second = await publishFiles({ ...site, 'changed.txt': lines(49_979_687) }, { base })
    const refined = (await lastOf(fixture.publishing.refine(second.manifestHash, base)))!
    const [before, after] = [await filesOf(second), await filesOf({ ...second, ...refined })]
    expect(after.get('same.txt')).toBe(before.get('same.txt'))
    const encodings = after.get('changed.txt')!.encodings!
    expect(encodings.br!.size).toBeLessThan(before.get('changed.txt')!.encodings!.br!.size)
    const variants = Object.values(encodings).map(({ hash }) => hash)
    expect(new Set(refined.added)).toEqual(new Set([...variants, refined.manifestHash]))
    expect(changed(second.blobs(), refined)).toEqual(new Set(await namedBy(refined.manifestHash)))
  })
})

/** Every blob that a manifest needs, itself among them. */
async function namedBy(manifestHash: string): Promise<string[]> {
  const text = (await fixture.blobs.read(manifestHash)).toString()
  return [manifestHash, ...(text.match(/(?<="hash":")[0-9a-f]{64}/g) ?? [])]
}

async function markVariant(
  manifestHash: string,
  name: string,
): Promise<{ manifestHash: string; variant: { hash: string; size: number } }> {
  const manifest = await fixture.publishing.readManifest(manifestHash)
  const { hash } = await fixture.blobs.put(Buffer.from('a mark'))
  const variant = { hash, size: 6 }
  const files = manifest.files.map(([path, file]): (typeof manifest.files)[number] =>
    path === name ? [path, { ...file, encodings: { ...file.encodings, br: variant } }] : [path, file],
  )
  return { manifestHash: (await fixture.blobs.put(encodeManifest({ ...manifest, files }))).hash, variant }
}
