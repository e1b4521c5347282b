/** What `create-account --password-stdin` takes for a password. */
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { readPassword } from '../../../control/operations/admin/commands.ts'

const read = (input: string) => readPassword(Readable.from([Buffer.from(input)]))

test.each([
  ['correct horse battery', 'correct horse battery'],
  ['with an end of line\n', 'with an end of line'],
  ['pässwörd of Ann\r\n', 'pässwörd of Ann'],
])('%j is a password', async (input, password) => {
  expect(await read(input)).toBe(password)
})

test.each(['', '\n', '\r\n', 'two\nlines of it\n', 'x'.repeat(5000)])('%.20j is none', async (input) => {
  await expect(read(input)).rejects.toThrow('as one line on stdin')
})
