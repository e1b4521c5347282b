/** Every command of the client, at a terminal after signing in. `npm run test:client` has every way to be signed in and every place. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { useEveryCommand } from '../support/cli-matrix.ts'
import { openCli, type Cli } from '../support/cli.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let cli: Cli
let stack: Stack

beforeAll(async () => {
  ;[cli, stack] = await Promise.all([openCli(), sharedStack()])
})
afterAll(() => cli.remove())

test('every command, at a terminal', () => useEveryCommand(cli, stack, 'login', 'terminal'))

test('every command of the help is among them, or has a test of its own', async () => {
  const elsewhere = ['dev']
  const { stdout } = await cli.run(['help'])
  const names = [...stdout.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name]) => name!)
  const source = await readFile(new URL('../support/cli-matrix.ts', import.meta.url), 'utf8')
  const isUsed = (name: string): boolean => name === 'login' || new RegExp(`[('\`\\[]${name}[ '\`\\]]`).test(source)
  expect(names.length).toBeGreaterThan(20)
  expect(names.filter((name) => !elsewhere.includes(name) && !isUsed(name))).toEqual([])
})
