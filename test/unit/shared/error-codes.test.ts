/** Every error that a caller can meet is in one catalogue, and every code of it in the page that users read. */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { sourceOf } from '../../../control/doors/dashboard/public/docs/guide-texts.ts'
import { withoutFrontMatter } from '../../../control/drops/publishing/markdown/front-matter.ts'

const ROOT = path.resolve(import.meta.dirname, '../../..')
const sources = globSync('{shared,certs,edge,control,cli}/**/*.ts', {
  cwd: ROOT,
  exclude: (name) => /(?:^|\/)(?:node_modules|dist)(?:\/|$)/.test(name),
}).map((file) => ({ file, text: readFileSync(path.join(ROOT, file), 'utf8') }))
const catalogue = sources.find(({ file }) => /^shared\/(?:\w+\/)?errors\.ts$/.test(file))!
const page = withoutFrontMatter(sourceOf('errors')).trimStart()

/** Code → its statuses, as the catalogue makes them; `status` stands where the caller names it. */
function madeCodes(): Map<string, Set<string>> {
  const codes = new Map<string, Set<string>>()
  const add = (code: string, status: string) => codes.set(code, (codes.get(code) ?? new Set()).add(status))
  for (const [, status, code] of catalogue.text.matchAll(/new ApiError\(\s*(\w+),\s*'(\w+)'/g)) add(code!, status!)
  const [, conflicts = ''] = /type ConflictCode =((?:\s*\| '\w+')+)/.exec(catalogue.text) ?? []
  for (const [, code] of conflicts.matchAll(/'(\w+)'/g)) add(code!, '409')
  return codes
}

const rows = new Map(
  [...page.matchAll(/^\| `(\w+)` \| ([\d, ]+) \| (.+) \|$/gm)].map(([, code, statuses, meaning]) => [
    code!,
    { statuses: statuses!.split(', '), meaning: meaning! },
  ]),
)

test('no error is made outside the catalogue', () => {
  const elsewhere = sources.filter(({ file, text }) => file !== catalogue.file && text.includes('new ApiError('))
  expect(elsewhere.map(({ file }) => file)).toEqual([])
})

test('the page has a row for every code, and none for others', () => {
  expect(madeCodes().size).toBeGreaterThan(40)
  expect([...rows.keys()].toSorted()).toEqual([...madeCodes().keys()].toSorted())
})

test('each row names the statuses that the code comes with', () => {
  for (const [code, statuses] of madeCodes()) {
    const fixed = [...statuses].filter((status) => status !== 'status')
    expect(rows.get(code)!.statuses, code).toEqual(expect.arrayContaining(fixed))
    if (!statuses.has('status')) expect(rows.get(code)!.statuses.toSorted(), code).toEqual(fixed.toSorted())
  }
})

test('docs/errors.md is the page without its settings (npx vitest run error-codes --update writes it)', async () => {
  await expect(page).toMatchFileSnapshot(path.join(ROOT, 'docs/errors.md'))
})
