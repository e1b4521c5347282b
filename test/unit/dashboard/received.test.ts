import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { filenameOfText } from '../../../control/doors/dashboard/publish/pasted-text.ts'
import { receivePublishForm } from '../../../control/doors/dashboard/publish/received.ts'
import type { Part, Request } from '../../../control/ground/http/route.ts'
import type { Intake, PreparedVersion } from '../../../control/drops/publishing/contract.ts'

const PREPARED = { manifestHash: 'hash' } as PreparedVersion

/** Notes what the intake was asked, in order. */
function createIntake(): { intake: Intake; calls: string[] } {
  const calls: string[] = []
  const intake: Intake = {
    addFile: async (path) => void calls.push(`file ${path}`),
    addUnnamed: async () => ({ name: (path) => void calls.push(`file ${path}`) }),
    addSingle: async (name) => void calls.push(`single ${name}`),
    addZip: async () => void calls.push('zip'),
    addStored: async () => {},
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

async function receive(parts: readonly Part[], accepts: 'page' | 'any' = 'any', admit = () => {}) {
  const { intake, calls } = createIntake()
  const request = {
    async multipart(onPart: (part: Part) => Promise<void>) {
      for (const part of parts) await onPart(part)
    },
  } as Request
  const form = await receivePublishForm(request, {
    owner: { kind: 'network', ip: '192.0.2.1' },
    publishing: { receive: () => intake },
    capBytes: 1,
    accepts,
    fields: new URLSearchParams(),
    admit,
  })
  return { ...form, calls: calls.filter((call) => call !== 'abort') }
}

test.each<[string, readonly Part[], readonly string[]]>([
  ['one page becomes the landing page', [file('report.html')], ['file index.html']],
  ['one Markdown file is rendered', [file('notes.md')], ['single notes.md']],
  ['a zip is unpacked', [file('site.ZIP')], ['zip']],
  ['several files keep their names', [file('index.html'), file('a.css')], ['file a.css', 'file index.html']],
  [
    'paths name the files that follow',
    [field('paths', 'x/index.html'), file('index.html'), field('paths', 'x/a.css'), file('a.css')],
    ['file x/a.css', 'file x/index.html'],
  ],
  ['pasted HTML', [pasted('<!doctype html><p>x')], ['single index.html']],
  ['pasted Markdown', [pasted('# x')], ['single index.md']],
  ['files win over text', [file('a.md'), pasted('# x')], ['single a.md']],
  ['a file input left alone counts for nothing', [file(''), pasted('# x')], ['single index.md']],
])('%s', async (_promise, parts, calls) => {
  const received = await receive(parts)
  expect(received.calls).toEqual(calls)
  expect(received.prepared).toBe(PREPARED)
})

test('an empty form publishes nothing', async () => {
  expect((await receive([pasted('  '), file('')])).prepared).toBeUndefined()
})

test('a lone file that is no page is refused', async () => {
  await expect(receive([file('photo.png')])).rejects.toMatchObject({ code: 'unsupported_file_type' })
})

test('a zip beside other files is refused', async () => {
  await expect(receive([file('a.zip'), file('b.html')])).rejects.toMatchObject({ code: 'invalid_request' })
})

test('without an account it is one page: no second file, no paths, no zip', async () => {
  await expect(receive([file('a.html'), file('b.html')], 'page')).rejects.toMatchObject({ code: 'invalid_request' })
  expect((await receive([file('site.zip')], 'page')).calls).toEqual(['single site.zip'])
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
    await expect(receive([field('csrf', 'x'), content], 'any', refuse)).rejects.toThrow('refused')
})

describe('pasted text', () => {
  test.each([
    ['<!DOCTYPE html><title>x', 'index.html'],
    ['  \n<html>', 'index.html'],
    ['<!-- a comment --> <body>', 'index.html'],
    ['<div>x</div>', 'index.html'],
    ['# Heading', 'index.md'],
    ['<b>bold</b> words', 'index.md'],
    ['<https://example.com>', 'index.md'],
    ['1 < 2', 'index.md'],
    ['', 'index.md'],
  ])('%j is %s', (text, name) => {
    expect(filenameOfText(text)).toBe(name)
  })
})
