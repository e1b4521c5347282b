/** A planted mistake changes a text of the sources; where that was rewritten, nothing would be planted. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { mistakes } from './planted.ts'

const ROOT = new URL('../../', import.meta.url)

test.each(mistakes.map(({ name, file, edits }) => ({ name, file, edits })))('$name', ({ file, edits }) => {
  const source = readFileSync(new URL(file, ROOT), 'utf8')
  for (const { from } of edits) expect([from, source.split(from).length - 1]).toEqual([from, 1])
})
