import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { walkMultipart } from '../../../control/ground/http/bodies/multipart.ts'

async function statusOf(head: string): Promise<unknown> {
  const body = Readable.from([Buffer.from(`--b\r\n${head}\r\n\r\nx\r\n--b--\r\n`)])
  const headers = { 'content-type': 'multipart/form-data; boundary=b' }
  return walkMultipart(body, headers, async () => {}, { hold() {} }).then(
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
