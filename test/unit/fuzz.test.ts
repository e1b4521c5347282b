/** A short run of `npm run fuzz`, always with the same inputs: what was found once, and a few thousand new ones. */
import { expect, test } from 'vitest'
import { readCorpus } from '../fuzz/corpus.ts'
import { smoke, tryOut } from '../fuzz/fuzz.ts'
import { Broken, targets } from '../fuzz/targets.ts'

const INPUTS = 400

test.each(targets.map(({ name }) => name))('%s takes any bytes', async (name) => {
  const target = targets.find((one) => one.name === name)!
  const { tried, findings } = await smoke(target, { inputs: INPUTS, seed: 1, corpus: readCorpus(name) })
  expect(tried.length).toBeGreaterThan(INPUTS)
  expect(findings.map(({ kind, message, input }) => ({ kind, message, input: input.toString('base64') }))).toEqual([])
})

test('what a target throws is found', async () => {
  const target = { name: 'own', maxBytes: 10, seeds: ['a'], words: ['!'] }
  const failing = { ...target, run: () => Promise.reject(new Broken('as promised')) }
  expect(await tryOut(failing, Buffer.from('x'))).toMatchObject({
    kind: 'crash',
    message: expect.stringContaining('as promised'),
  })
  expect(await tryOut({ ...target, run: () => {} }, Buffer.from('x'))).toBeUndefined()
})

test('the same seed gives the same inputs', async () => {
  const target = { name: 'own', maxBytes: 50, seeds: ['a'], words: ['!'], run: () => {} }
  const inputsOf = async (seed: number): Promise<string[]> =>
    (await smoke(target, { inputs: 100, seed, corpus: [] })).tried.map((input) => input.toString('hex'))
  expect(await inputsOf(1)).toEqual(await inputsOf(1))
  expect(await inputsOf(1)).not.toEqual(await inputsOf(2))
})
