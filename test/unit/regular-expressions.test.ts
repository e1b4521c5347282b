/** No regular expression of the sources takes more than linear time for what a stranger may send. */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseSync } from 'vite'
import { describe, expect, test } from 'vitest'
import { regexProblem } from '../support/regex-cost.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const FOLDERS = ['edge', 'control', 'shared', 'certs', 'cli']

/** Expressions that are not linear by their form, and why that does not matter. By file and how they begin. */
const EXCEPTIONS: readonly { readonly file: string; readonly start: string; readonly why: string }[] = [
  { file: 'certs/local/local-ca.ts', start: '/^CN=', why: 'the subject of our own certificate' },
  { file: 'shared/secrets/password.ts', start: '/=+$/', why: 'base64 that was just made from bytes of a fixed number' },
  { file: 'shared/content/secret-files.ts', start: '/(?:^|\\/)\\.env', why: 'a path, of 1,024 bytes at most' },
  { file: 'shared/pages/compact-script.ts', start: '/\\/\\*', why: 'our own scripts' },
  { file: 'shared/pages/design.ts', start: '/\\/\\*', why: 'our own stylesheet' },
  { file: 'shared/blobs/location.ts', start: '/^\\/+', why: 'a setting of the operator' },
  { file: 'shared/blobs/s3-store.ts', start: '/<Contents>', why: 'a list of 1,000 names at most, from our own store' },
  { file: 'control/drops/trust/phishing.ts', start: '/<form', why: 'every run of white space is one blank before' },
  { file: 'control/drops/trust/phishing.ts', start: '/\\baction', why: 'every run of white space is one blank before' },
  { file: 'control/drops/trust/phishing.ts', start: '/<script[', why: 'every run of white space is one blank before' },
  {
    file: 'control/drops/trust/phishing.ts',
    start: '/oncontextmenu',
    why: 'every run of white space is one blank before',
  },
  { file: 'control/ground/mail/eml.ts', start: '/boundary=', why: 'a header of a mail that we wrote' },
  {
    file: 'control/ground/database/array-types.ts',
    start: '/"((?:',
    why: 'an array as Postgres writes it: quotes are closed',
  },
  { file: 'control/operations/admin/upgrade-rules.ts', start: '/--[^', why: 'a migration of ours' },
  { file: 'control/operations/admin/doctor/checks.ts', start: '/\\?.*', why: 'a setting of the operator' },
  { file: 'control/operations/admin/doctor/checks.ts', start: '/\\/\\/.*', why: 'a setting of the operator' },
  {
    file: 'edge/accept/http1/node-exchange.ts',
    start: '/^https',
    why: 'a request target has no line break, so the end cannot fail',
  },
  { file: 'edge/accept/outgoing/send-queues.ts', start: '/^ *\\d+:', why: 'a table of the kernel' },
]

/** Expressions that are put together while running, and from what. */
const CONSTRUCTED: readonly { readonly file: string; readonly from: string }[] = [
  { file: 'control/operations/admin/doctor/checks.ts', from: 'words of ours, over what our own Redis says of itself' },
  { file: 'control/plans/billing/rules.ts', from: 'the names of plans' },
  { file: 'control/drops/trust/phishing.ts', from: 'a list of brands' },
  { file: 'shared/content/secret-files.ts', from: 'the patterns of the list above it' },
]

interface Found {
  readonly file: string
  readonly raw: string
  readonly problem: string | undefined
}

function scan(): { literals: Found[]; constructed: Set<string> } {
  const literals: Found[] = []
  const constructed = new Set<string>()
  for (const file of globSync(`{${FOLDERS.join()}}/**/*.ts`, { cwd: ROOT })) {
    if (/(?:^|\/)(?:node_modules|dist)\//.test(file)) continue
    visit(parseSync(file, readFileSync(path.join(ROOT, file), 'utf8')).program, (node) => {
      const { regex } = node as { regex?: { pattern: string; flags: string } }
      if (node['type'] === 'Literal' && regex)
        literals.push({ file, raw: String(node['raw']), problem: regexProblem(regex.pattern, regex.flags) })
      const { callee } = node as { callee?: { name?: string } }
      if (callee?.name === 'RegExp') constructed.add(file)
    })
  }
  return { literals, constructed }
}

function visit(node: unknown, look: (node: Record<string, unknown>) => void): void {
  if (Array.isArray(node)) for (const one of node) visit(one, look)
  else if (typeof node === 'object' && node !== null) {
    look(node as Record<string, unknown>)
    for (const value of Object.values(node)) if (!(value instanceof RegExp)) visit(value, look)
  }
}

describe('the sources', () => {
  const { literals, constructed } = scan()
  const isException = ({ file, raw }: Found): boolean =>
    EXCEPTIONS.some((exception) => exception.file === file && raw.startsWith(exception.start))

  test('hold expressions at all', () => expect(literals.length).toBeGreaterThan(200))

  test('hold none that is not linear, but for those that say why', () => {
    const found = literals.filter((literal) => literal.problem !== undefined && !isException(literal))
    expect(found.map(({ file, raw, problem }) => `${file} ${raw}: ${problem}`)).toEqual([])
  })

  test('every exception is needed', () => {
    const needed = literals.filter((literal) => literal.problem !== undefined)
    const idle = EXCEPTIONS.filter(
      ({ file, start }) => !needed.some((one) => one.file === file && one.raw.startsWith(start)),
    )
    expect(idle).toEqual([])
  })

  test('those that are put together while running are known', () => {
    expect([...constructed].toSorted()).toEqual(CONSTRUCTED.map(({ file }) => file).toSorted())
  })
})

describe('the check itself', () => {
  test.each([
    ['(?:a+)+$', ''],
    ['^(?:a+)+$', ''],
    ['^(?:\\s|<!--[\\s\\S]*?-->)*<', ''],
    ['^(?:[ \\t]+.*\\n)*?---', ''],
    ['(?:a|a)*b*a*c', ''],
    ['\\s+#.*$', ''],
    ['\\s+$', ''],
    ['=\\s*["\']?\\s*x', ''],
    ['\\/\\*[\\s\\S]*?\\*\\/', 'g'],
    ['<[^>]*>', 'g'],
    ['^(.*):(.*)$', ''],
    ['a*a*b', 'y'],
    ['^(?:.*a)*b', ''],
  ])('finds /%s/%s', (source, flags) => expect(regexProblem(source, flags)).toBeDefined())

  test.each([
    ['^\\s+', ''],
    ['\\s+', 'g'],
    ['<[^<>]*>', 'g'],
    ['^[a-z]+(?:\\.[a-z]+)*$', ''],
    ['^\\s*$', ''],
    ['\\p{M}{31}', 'u'],
    ['<div\\b[^>]*>', 'y'],
    ['[?#]', ''],
    ['^(?:a|b)+c$', ''],
    ['^a{0,500}a{0,500}b', ''],
  ])('passes /%s/%s', (source, flags) => expect(regexProblem(source, flags)).toBeUndefined())
})
