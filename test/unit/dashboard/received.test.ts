import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { addField } from '../../../control/doors/dashboard/frame/typed-fields.ts'
import { receivePublishForm } from '../../../control/doors/dashboard/publish/received.ts'
import type { Part, Request } from '../../../control/ground/http/route.ts'
import type { Intake, PreparedVersion, UploadOwner } from '../../../control/drops/publishing/contract.ts'

const PREPARED = { manifestHash: 'hash' } as PreparedVersion

/** Notes what the intake was asked, in order. */
function createIntake(): { intake: Intake; calls: string[] } {
  const calls: string[] = []
  const intake: Intake = {
    addFile: async (path) => void calls.push(`file ${path}`),
    addUnnamed: async () => ({
      size: 1,
      name: (path) => void calls.push(`file ${path}`),
      alone: async (name) => void calls.push(`alone ${name}`),
    }),
    addSingle: async (name) => void calls.push(`single ${name}`),
    addZip: async () => void calls.push('zip'),
    addStored: async () => {},
    addChanges: async () => {},
    finish: async () => PREPARED,
    abort: async () => void calls.push('abort'),
  }
  return { intake, calls }
}

const file = (filename: string): Part => ({
  kind: 'file',
  name: 'files',
  filename,
  type: '',
  stream: Readable.from(['x']),
})
const pasted = (text: string): Part => ({ kind: 'content', name: 'text', stream: Readable.from([Buffer.from(text)]) })
const field = (name: string, value: string): Part => ({ kind: 'field', name, value })

const ACCOUNT = { kind: 'organisation', id: 'org_1' } as const
const STRANGER = { kind: 'network', ip: '192.0.2.1' } as const

async function receive(parts: readonly Part[], owner: UploadOwner = ACCOUNT, admit = () => {}) {
  const { intake, calls } = createIntake()
  const request = {
    async multipart(onPart: (part: Part) => Promise<void>) {
      for (const part of parts) await onPart(part)
    },
  } as Request
  const fields = new URLSearchParams()
  const prepared = await receivePublishForm(request, {
    fields,
    owner,
    publishing: { receive: () => intake },
    capBytes: 100,
    admit,
  })
  return { fields, prepared, calls: calls.filter((call) => call !== 'abort') }
}

test('a file that was announced and did not arrive is told, and nothing is made of the rest', async () => {
  const announced = [field('paths', 'site/index.html'), field('paths', 'site/a.css')]
  await expect(receive(announced)).rejects.toMatchObject({ status: 400, message: /^2 files .*did not arrive/ })
  await expect(receive([...announced, file('index.html')])).rejects.toMatchObject({
    status: 400,
    message: /^A file .*did not arrive/,
  })
})

test.each<[string, readonly Part[], readonly string[]]>([
  ['one page becomes the landing page', [file('report.html')], ['alone report.html']],
  ['one Markdown file is rendered', [file('notes.md')], ['alone notes.md']],
  ['a document is shown', [file('photo.png')], ['alone photo.png']],
  ['a zip is unpacked', [file('site.ZIP')], ['alone site.ZIP']],
  [
    'a zip that is known to come by itself is unpacked at once',
    [field('paths', 'site.zip'), file('site.zip')],
    ['zip'],
  ],
  ['several files keep their names', [file('index.html'), file('a.css')], ['file index.html', 'file a.css']],
  ['the first of several may be Markdown', [file('a.md'), file('index.html')], ['file a.md', 'file index.html']],
  ['the first of several may be a zip', [file('a.zip'), file('index.html')], ['file a.zip', 'file index.html']],
  ['what a system adds does not make a site', [file('.DS_Store'), file('a.md')], ['alone a.md']],
  [
    'all paths may come before all files',
    [field('paths', 'x/index.html'), field('paths', 'x/a.css'), file('index.html'), file('a.css')],
    ['file index.html', 'file a.css'],
  ],
  [
    'paths name the files that follow',
    [field('paths', 'x/index.html'), file('index.html'), field('paths', 'x/a.css'), file('a.css')],
    ['file index.html', 'file a.css'],
  ],
  ['pasted HTML', [pasted('<!doctype html><p>x')], ['single index.html']],
  ['pasted Markdown', [pasted('# x')], ['single index.md']],
  ['pasted text is what its publisher says', [field('format', 'html'), pasted('# x')], ['single index.html']],
  ['files win over text', [file('a.md'), pasted('# x')], ['alone a.md']],
  ['a file input left alone counts for nothing', [file(''), pasted('# x')], ['single index.md']],
])('%s', async (_promise, parts, calls) => {
  const received = await receive(parts)
  expect(received.calls).toEqual(calls)
  expect(received.prepared).toBe(PREPARED)
})

test('an empty form publishes nothing', async () => {
  expect((await receive([pasted('  '), file('')])).prepared).toBeUndefined()
})

test('a lone file that cannot be shown is refused', async () => {
  await expect(receive([file('tool.exe')])).rejects.toMatchObject({ code: 'unsupported_file_type' })
})

test('several files without a landing page are refused', async () => {
  await expect(receive([file('a.zip'), file('b.html')])).rejects.toMatchObject({ code: 'missing_index' })
  await expect(receive([field('paths', 'x/a.html'), file('a.html')])).rejects.toMatchObject({ code: 'missing_index' })
})

test('without an account it is one page: no second file, no paths, no zip', async () => {
  await expect(receive([file('a.html'), file('b.html')], STRANGER)).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(receive([field('paths', 'x/a.html'), file('a.html')], STRANGER)).rejects.toThrow('needs an account')
  for (const name of ['site.zip', 'photo.png'])
    await expect(receive([file(name)], STRANGER)).rejects.toMatchObject({ code: 'unsupported_file_type' })
})

test('what pasted text is shows behind a long comment too', async () => {
  const comment = Buffer.from(`<!--${'x'.repeat(100_000)}-->`)
  const stream = Readable.from([comment, Buffer.from('<html>')])
  expect((await receive([{ kind: 'content', name: 'text', stream }])).calls).toEqual(['single index.html'])
})

test('nothing is taken in before the form was admitted', async () => {
  const refuse = (): never => {
    throw new Error('refused')
  }
  for (const content of [file('a.html'), pasted('# x')])
    await expect(receive([field('csrf', 'x'), content], ACCOUNT, refuse)).rejects.toThrow('refused')
})

test('short text can be shown again', async () => {
  expect((await receive([pasted('# x')])).fields.get('text')).toBe('# x')
})

test('a form with files has no more fields than one without, and none of them is a page', () => {
  const fields = new URLSearchParams()
  for (let count = 0; count < 64; count++) addField(fields, { name: `a${count}`, value: 'b' })
  expect(() => addField(fields, { name: 'one more', value: '' })).toThrow('64 fields')
  expect(() => addField(new URLSearchParams(), { name: 'slug', value: 'x'.repeat(64_000) })).toThrow('64000 bytes')
  addField(new URLSearchParams(), { name: 'text', value: 'x'.repeat(100_000) })
})
