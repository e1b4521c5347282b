/** The commands about tests are told what to do like the benches: --help says what there is, and nothing begins without it being understood. */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { expect, test } from 'vitest'
import { readArguments } from '../../support/arguments.ts'

const ROOT = path.resolve(import.meta.dirname, '../../..')
const COMMANDS = {
  mutate: 'mutation',
  fuzz: 'fuzz',
  simulate: 'simulation',
  'test:deep': 'deep',
  'test:repeat': 'repeat',
}

test.each(Object.entries(COMMANDS))('npm run %s -- --help', (command, folder) => {
  const call = [path.join(ROOT, 'test', folder, 'main.ts'), '--nosuch', '--help']
  const { status, stdout, stderr } = spawnSync(process.execPath, call, { cwd: ROOT, encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
  expect(stdout).toContain(`npm run ${command} -- `)
  expect(stdout).toContain('--help')
})

test('a command that is not understood says so in one sentence and does nothing', () => {
  const call = [path.join(ROOT, 'test', 'mutation', 'main.ts'), 'nosuch']
  const { status, stdout, stderr } = spawnSync(process.execPath, call, { cwd: ROOT, encoding: 'utf8' })
  expect([status, stdout, stderr]).toEqual([
    2,
    '',
    'There is nothing to mutate in nosuch (see test/mutation/targets.ts).\n',
  ])
})

test.each([
  [['a', 'b'], { kind: 'run', values: { seed: undefined }, words: ['a', 'b'] }],
  [['a', '--seed', '7'], { kind: 'run', values: { seed: 7 }, words: ['a'] }],
  [['--seed', '10'], { kind: 'wrong', sentence: '--seed wants a whole number from 0 to 9, not “10” (see --help).' }],
  [['c'], { kind: 'wrong', sentence: 'There is no part “c”: a, b (see --help).' }],
])('%j', (args, expected) => {
  const options = { seed: { kind: 'whole', least: 0, most: 9, about: 'x' } } as const
  expect(readArguments(options, args, { sample: 'part', of: ['a', 'b'], about: 'x' })).toEqual(expected)
})
