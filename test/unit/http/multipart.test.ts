import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { walkMultipart } from '../../../control/ground/http/bodies/multipart.ts'

async function statusOf(head: string): Promise<unknown> {
  const body = Readable.from([Buffer.from(`--b\r\n${head}\r\n\r\nx\r\n--b--\r\n`)])
  const headers = { 'content-type': 'multipart/form-data; boundary=b' }
  return walkMultipart(body, headers, async () => {}).then(
    () => 'taken',
    (error: { status?: number }) => error.status,
  )
}

test('a part is taken', async () => {
  expect(await statusOf('Content-Disposition: form-data; name="a"')).toBe('taken')
})

test.each([
  ['a header of 20 kB', `Content-Disposition: form-data; name="a"\r\nX-A: ${'a'.repeat(20_000)}`],
  ['a filename of 20 kB', `Content-Disposition: form-data; name="a"; filename="${'a'.repeat(20_000)}.html"`],
  ['many headers', Array.from({ length: 3000 }, (_, index) => `x-${index}: a`).join('\r\n')],
  ['a header without an end', 'Content-Disposition'],
])('%s is a bad request', async (_name, head) => {
  expect(await statusOf(head)).toBe(400)
})

/** What comes out of a form, whichever way its bytes are cut. */
async function partsOf(form: string, chunkBytes: number): Promise<string[]> {
  const bytes = Buffer.from(form)
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, index) =>
    bytes.subarray(index * chunkBytes, (index + 1) * chunkBytes),
  )
  const parts: string[] = []
  await walkMultipart(
    Readable.from(chunks),
    { 'content-type': 'multipart/form-data; boundary="b"' },
    async (part) => {
      const value = part.kind === 'field' ? part.value : Buffer.concat(await part.stream.toArray()).toString()
      parts.push(`${part.kind} ${part.name}${part.kind === 'file' ? ` ${part.filename}` : ''}: ${value}`)
    },
    { contentField: 'text' },
  )
  return parts
}

test.each([1, 2, 7, 1000])('the field that carries content is a stream, in chunks of %i bytes', async (chunkBytes) => {
  const part = (disposition: string, value: string): string =>
    `--b\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${value}\r\n`
  const forged = 'x--b\r\nContent-Disposition: form-data; name="text"\r\n\r\nx'
  const form = [
    part('name="text"', ''),
    part('name="slug"', 'a\r\n-'),
    part('name="text"', `é\r\n--a\r\n${forged}`),
    part('name="text"; filename="a.html"', 'b'),
    part('name="texts"', forged),
    part('name=text', 'c'),
    '--b--\r\n',
  ].join('')
  expect(await partsOf(form, chunkBytes)).toEqual([
    'content text: ',
    'field slug: a\r\n-',
    `content text: é\r\n--a\r\n${forged}`,
    'file text a.html: b',
    `field texts: ${forged}`,
    'content text: c',
  ])
})
