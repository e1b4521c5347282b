/** Pages get our scripts without types, comments and blanks, and nothing else is different. */
import { readdirSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'
import { expect, test } from 'vitest'
import { compactScript } from '../../../shared/pages/compact-script.ts'
import { readInlineScripts, SHARED_SCRIPTS } from '../../../shared/pages/inline-script.ts'

const EDGE_SCRIPTS = fileURLToPath(new URL('../../../edge/rewrite/browser/', import.meta.url))
const FILES = [SHARED_SCRIPTS, EDGE_SCRIPTS].flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .map((name) => path.join(folder, name)),
)

/** The syntax tree without places, and without how a string is quoted. */
function treeOf(script: string): unknown {
  const { program, errors } = parseSync('script.js', script)
  expect(errors).toEqual([])
  return JSON.parse(
    JSON.stringify(program, (name, value: unknown) =>
      ['start', 'end', 'raw', 'hashbang'].includes(name) ? undefined : value,
    ),
  )
}

test('every script means the same as its source', () => {
  expect(FILES.length).toBeGreaterThan(5)
  for (const file of FILES) {
    const plain = stripTypeScriptTypes(readFileSync(file, 'utf8'))
    const compact = compactScript(plain)
    expect(treeOf(compact), file).toEqual(treeOf(plain))
    expect(compact, file).toMatch(/^[\n -~]*$/)
    expect(compact.length).toBeLessThan(plain.length)
  }
})

test.each([
  ['const a = 1\nconst b = 2', 'const a=1\nconst b=2'],
  ['/** Why. */\nf() // how\ng()', 'f()\ng()'],
  ['f() // how', 'f()'],
  ['a = b /* c */ + d', 'a=b+d'],
  ['return value', 'return value'],
  ['a + +b - -c', 'a+ +b- -c'],
  ["f('it is', 'a \"word\"', '\\'')", `f("it is",'a "word"','\\'')`],
  ['`a  ${ b }  c`', '`a  ${ b }  c`'],
  ["x.replace(/ {2}'[/ ]/g, '')", `x.replace(/ {2}'[/ ]/g,"")`],
  ['f(\n  a,\n  b,\n)', 'f(a,b)'],
  ['(e) => e', 'e=>e'],
  ['f((e) => e, async (e) => e, (a, b) => a)', 'f(e=>e,async(e)=>e,(a,b)=>a)'],
  ['if (a) {\n  b()\n} else c()', 'if(a){b()}else c()'],
  ['a\n;(b).c()', 'a;(b).c()'],
  ['i++\nj', 'i++\nj'],
  ['const f = function () {}\nf()', 'const f=function(){}\nf()'],
  ['', ''],
])('%j becomes %j', (script, expected) => {
  expect(compactScript(script)).toBe(expected)
})

test('named scripts come with what they import, each once, and an unknown name is a mistake', () => {
  const scripts = readInlineScripts(EDGE_SCRIPTS)
  expect(scripts('load', 'meta-pixel', 'load').match(/function load\(/g)).toHaveLength(1)
  expect(scripts('meta-pixel')).toBe(scripts('load', 'meta-pixel'))
  expect(scripts('consent')).not.toContain('function load(')
  expect(() => scripts('no-such-script')).toThrow('There is no script no-such-script.ts')
})
