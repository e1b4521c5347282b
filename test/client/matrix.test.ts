/** Every command × every way to be signed in × wherever it may run. */
import { afterAll, beforeAll, test } from 'vitest'
import { PLACES, SIGN_INS, useEveryCommand } from '../support/cli-matrix.ts'
import { openCli, type Cli } from '../support/cli.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let cli: Cli
let stack: Stack

beforeAll(async () => {
  ;[cli, stack] = await Promise.all([openCli(), sharedStack()])
})
afterAll(() => cli.remove())

const combinations = SIGN_INS.flatMap((signIn) => PLACES.map((place) => [signIn, place] as const))

test.each(combinations)('%s, %s', (signIn, place) => useEveryCommand(cli, stack, signIn, place))
