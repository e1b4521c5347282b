/** The faults that `npm run mutate` plants: which ones, and that a source with all of them asleep is the source. */
import { describe, expect, test } from 'vitest'
import { stripTypeScriptTypes } from 'node:module'
import { Script, createContext } from 'node:vm'
import { instrument } from '../mutation/instrument.ts'
import { findMutants } from '../mutation/mutants.ts'
import { report } from '../mutation/report.ts'
import { FLOORS } from '../mutation/floors.ts'
import { wholeFolders } from '../mutation/targets.ts'

/** What a function makes of its arguments, with one of the faults active; 0: none. */
function run(source: string, active: number, ...args: unknown[]): unknown {
  const mutants = findMutants('a.ts', source)
  const text = stripTypeScriptTypes(instrument(source, mutants, 1))
  const context = createContext({ __mutant: (number: number) => number === active })
  const decide = new Script(`${text};decide`).runInContext(context) as (...all: unknown[]) => unknown
  return decide(...args)
}

describe('one fault each', () => {
  test.each<[string, string[]]>([
    ['a < b', ['a < b: < → <=', 'a < b: < → >=']],
    ['a === b', ['a === b: === → !==']],
    ['a && b', ['a && b without its right side', 'a && b without its left side']],
    ['a ?? b', ['a ?? b without its right side', 'a ?? b without its left side']],
    ['a + b', ['a + b: + → -']],
    ['!a', ['!a → a']],
    ['a?.b', ['a?.b: ?. → .']],
    ['a ? b : c', ['a → true', 'a → false']],
    ['a.some(b)', ['some → every']],
    ['a.trim()', ['a.trim() without .trim()']],
    ['7', ['7 → 8']],
    ['true', ['true → false']],
    ["'word'", ["'word' → ''"]],
    ["''", ["'' → '?'"]],
    ["'two words'", []],
    ["'a list'.split(b)", ["'a list' → ''"]],
    ['`${a}.html`', ["`${a}.html` → ''"]],
    ['/^a+$/.test(b)', ['/^a+$/ → /a+$/', '/^a+$/ → /^a*$/', '/^a+$/ → /^a$/', '/^a+$/ → /^a+/']],
    ['/[a-c]|x{2,3}/i.test(b)', ['/[a-c]|x{2,3}/i → /x{2,3}/i', '/[a-c]|x{2,3}/i → /[a-c]/i']],
    ['b as unknown as "text"', []],
  ])('%s', (expression, changes) => {
    const found = findMutants('a.ts', `function decide(a, b, c) { const d = ${expression}; return undefined }`)
    expect(found.map(({ change }) => change)).toEqual(expect.arrayContaining(changes))
    if (changes.length === 0) expect(found).toEqual([])
  })

  test('statements are left out, returns return nothing', () => {
    const changes = findMutants('a.ts', 'function decide(a) {\n a.b()\n for (;;) { break }\n return a }').map(
      ({ change }) => change,
    )
    expect(changes).toEqual(['a.b() → nothing', 'break → nothing', 'return a → return'])
  })

  test('constants that only other modules read are left alone', () => {
    const source = 'export const FAR = 7\nexport const NEAR = 8\nexport function decide() { return NEAR }'
    expect(findMutants('a.ts', source).map(({ change }) => change)).toEqual(['8 → 9', 'return NEAR → return'])
  })
})

describe('a source with its faults asleep', () => {
  const source = `
    const LIMITS: readonly number[] = [1, 2, 3]
    function decide(list: readonly { name?: string; size: number }[], limit: number): string {
      let text = ''
      for (const [index, { name, size }] of list.entries()) {
        if (size > limit || index >= LIMITS.length) continue
        const shown = name?.trim().toUpperCase() ?? \`\${index}\`
        text += /^[a-z]/i.test(shown) ? shown : \`<\${shown}>\`
      }
      return text
    }`
  const args = [[{ name: ' a', size: 1 }, { size: 2 }, { name: 'big', size: 9 }, { name: 'd', size: 1 }], 2] as const

  test('does what it did', () => expect(run(source, 0, ...args)).toBe('A<1>'))

  test('does something else with nearly every one of them', () => {
    const mutants = findMutants('a.ts', source)
    const silent = mutants.filter((_, index) => {
      try {
        return run(source, index + 1, ...args) === 'A<1>'
      } catch {
        return false
      }
    })
    expect(silent.map(({ change }) => change)).toEqual(['1 → 2', '2 → 3', '3 → 4', '/^[a-z]/i → /[a-z]/i'])
  })
})

describe('the report', () => {
  const source = 'function decide(a, b) { return a < b }'
  const mutants = findMutants('a.ts', source)
  const history = {
    caught: new Set([1]),
    endless: new Set<number>(),
    tried: new Set<string>(),
    reached: new Set([1, 2]),
    done: new Set<string>(),
    useless: [],
    open: undefined,
  }
  const target = { file: 'a.ts', folder: 'a', first: 1, source, mutants }

  test('counts what was caught, of all faults, and names the others', () => {
    const { text, survivors } = report([target], history, {})
    expect(survivors.map(({ change }) => change)).toEqual(mutants.slice(1).map(({ change }) => change))
    expect(text).toContain('33.3 %')
    expect(text).toContain(`${mutants[2]!.change}  (no test gets here)`)
  })

  test.each([
    [33, true],
    [33.4, false],
  ])('a folder whose floor is %f %: good is %s', (floor, isGood) => {
    const told = report([target], history, { a: floor })
    expect(told.isGood).toBe(isGood)
    expect(told.text.includes('a is below its floor')).toBe(!isGood)
  })

  test('a folder that has no floor, or is asked for in part, is not judged', () => {
    expect(report([target], history, { b: 100 }).isGood).toBe(true)
    expect(wholeFolders(['edge/gate/unlock.ts', 'edge/send', 'certs'])).toEqual(['edge/send', 'certs'])
  })

  test('every folder that is mutated has a floor, and no other', () => {
    expect(Object.keys(FLOORS).toSorted()).toEqual(wholeFolders([]).toSorted())
  })
})
