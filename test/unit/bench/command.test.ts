/** What a bench is told is checked before anything is started or written; --help says what there is. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { benches, PACKAGE_OF, type BenchName } from '../../../bench/benches.ts'
import { decide, type Surroundings } from '../../../bench/command.ts'

const ROOT = path.resolve(import.meta.dirname, '../../..')
const NAMES = Object.keys(benches) as BenchName[]
const everything: Surroundings = { isInstalled: () => true, isRoot: true }
const nothing: Surroundings = { isInstalled: () => false, isRoot: true }
const without = (missing: string): Surroundings => ({ ...everything, isInstalled: (program) => program !== missing })

describe.each([...NAMES, 'all'])('%s', (name) => {
  test('--help says what it asks, how long it takes and what may be said', () => {
    const decision = decide([name, '--nosuch', '--help'], nothing)
    expect(decision).toMatchObject({ kind: 'say', isWrong: false })
    const { text } = decision as { text: string }
    if (name in benches) {
      const { asks, lasts, options, needs, uses } = benches[name as BenchName]
      expect(text).toContain(asks)
      expect(text).toContain(lasts)
      for (const option of Object.keys(options)) expect(text).toContain(`--${option}`)
      for (const program of [...needs, ...uses]) expect(text).toContain(`${program} (${PACKAGE_OF[program]})`)
    }
    expect(text).not.toContain('undefined')
  })

  test.each([
    [['--nosuch'], 'There is no option --nosuch (see --help).'],
    [['-x'], 'There is no option -x (see --help).'],
    [['7'], '“7” stands alone: every value follows an option (see --help).'],
  ])('refuses %j', (args, sentence) => {
    expect(decide([name, ...args], everything)).toEqual({ kind: 'say', text: sentence, isWrong: true })
  })
})

test.each([
  [['edge', '--seconds', 'abc'], '--seconds wants a number from 0.1 to 3600, not “abc” (see --help).'],
  [['edge', '--seconds', '0'], '--seconds wants a number from 0.1 to 3600, not “0” (see --help).'],
  [['edge', '--seconds', '-1'], '--seconds wants a number from 0.1 to 3600, not “-1” (see --help).'],
  [['edge', '--seconds'], '--seconds wants a number from 0.1 to 3600 (see --help).'],
  [['edge', '--seconds='], '--seconds wants a number from 0.1 to 3600 (see --help).'],
  [['edge', '--rounds', '1.5'], '--rounds wants a whole number from 1 to 100, not “1.5” (see --help).'],
  [['edge', '--rounds', '3', '--rounds', '4'], '--rounds is given twice (see --help).'],
  [['edge', '--keep=yes'], '--keep takes no value (see --help).'],
  [
    ['edge', '--only', 'nosuch'],
    '--only wants names out of edge, bare, nginx, caddy with commas between them, not “nosuch” (see --help).',
  ],
  [['all', '--only', 'edge,nosuch'], /^--only wants names out of edge, walk, .*, not “edge,nosuch” \(see --help\)\.$/],
  [['load'], '--url is needed (see --help).'],
  [
    ['load', '--url', 'x', '--duration', '2d'],
    '--duration wants a time like 30s or 2m, from 1 to 3600 seconds, not “2d” (see --help).',
  ],
  [['all', '--quick', '--keep'], /exclude each other/],
  [['nosuch'], /^There is no bench “nosuch”: all, edge, /],
  [[], /^There is no bench/],
])('%j is refused in one sentence', (args, sentence) => {
  const decision = decide(args, everything)
  expect(decision).toMatchObject({ kind: 'say', isWrong: true })
  const { text } = decision as { text: string }
  if (typeof sentence === 'string') expect(text).toBe(sentence)
  else expect(text).toMatch(sentence)
  expect(text).not.toContain('\n')
})

test('what was said is what is run', () => {
  expect(decide(['edge', '--seconds', '2.5', '--only=edge,nginx', '--rows', 'h1 4 kB,handshake'], everything)).toEqual({
    kind: 'run',
    name: 'edge',
    values: { seconds: 2.5, rounds: 3, only: ['edge', 'nginx'], rows: ['h1 4 kB', 'handshake'], keep: false },
    order: { isKept: false, notes: [] },
  })
  expect(decide(['load', '--url', 'https://localhost/', '--duration', '2m', '--http2'], nothing)).toMatchObject({
    kind: 'run',
    values: { duration: 120, http2: true, insecure: false, report: undefined },
  })
  expect(decide(['all', '--only', 'mixed,walk', '--keep'], everything)).toMatchObject({
    kind: 'runAll',
    names: ['walk', 'mixed'],
    order: { isKept: true },
  })
})

test('a program that is missing is named with its package', () => {
  expect(decide(['edge'], without('taskset'))).toMatchObject({
    isWrong: true,
    text: expect.stringMatching(/taskset .*apt-get install util-linux/),
  })
  expect(decide(['all', '--only', 'publish'], without('unzip'))).toMatchObject({
    isWrong: true,
    text: expect.stringMatching(/^unzip is not/),
  })
  expect(decide(['all', '--only', 'walk'], nothing)).toMatchObject({ kind: 'runAll' })
})

test('what takes root is left out of a run of all for others, which is said; asked for by name, it is refused', () => {
  const others = { ...everything, isRoot: false }
  expect(decide(['all', '--only', 'walk,small'], others)).toMatchObject({
    kind: 'runAll',
    names: ['walk'],
    order: { notes: [expect.stringMatching(/^bench:small .*root\. It is left out\.$/)] },
  })
  expect(decide(['small'], others)).toMatchObject({ isWrong: true, text: expect.stringMatching(/takes root/) })
  expect(decide(['all', '--only', 'small'], everything)).toMatchObject({ names: ['small'], order: { notes: [] } })
})

test('without nginx its column is left out, which is said; asked for by name, it is refused', () => {
  expect(decide(['edge'], without('nginx'))).toMatchObject({
    kind: 'run',
    order: { notes: [expect.stringMatching(/^nginx is not installed .*left out\.$/)] },
  })
  expect(decide(['edge', '--only', 'edge,nginx'], without('nginx'))).toMatchObject({
    isWrong: true,
    text: /^nginx is not/,
  })
  expect(decide(['edge', '--only', 'edge,caddy'], without('nginx'))).toMatchObject({ kind: 'run' })
})

test('every bench has a script, its quick arguments are right, and bench/README.md says how long it takes', () => {
  const { scripts } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const own = Object.entries(scripts).filter(([script]) => /^bench(:|$)/.test(script))
  expect(own).toEqual([
    ['bench', 'node bench/main.ts all'],
    ['bench:peers', 'node bench/peers.ts'],
    ...NAMES.map((name) => [`bench:${name}`, `node bench/main.ts ${name}`]),
  ])
  const readme = readFileSync(path.join(ROOT, 'bench/README.md'), 'utf8').split('\n')
  for (const name of NAMES) {
    if (name !== 'load') expect(decide([name, ...benches[name].quick], everything)).toMatchObject({ kind: 'run' })
    const row = readme.find((line) => line.startsWith(`| \`npm run bench:${name}\` |`))
    expect(row, name).toMatch(new RegExp(`\\| ${benches[name].lasts} \\|$`))
  }
})
