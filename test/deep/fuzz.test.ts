/** The fuzzer itself, which goes by coverage and by processor time: neither is the same in every run. */
import { expect, test } from 'vitest'
import { filenameOfText } from '../../control/drops/publishing/files/pasted-text.ts'
import { examine, fuzz } from '../fuzz/fuzz.ts'
import { Broken } from '../fuzz/targets.ts'

test('what takes too long is found', async () => {
  const target = { name: 'own', maxBytes: 10, seeds: ['a'], words: ['!'] }
  const slow = {
    ...target,
    run() {
      const before = process.threadCpuUsage()
      while (process.threadCpuUsage(before).user < 300_000);
    },
  }
  expect(await examine(slow, Buffer.from('x'))).toMatchObject({ kind: 'hang' })
})

test('an input is kept for what it reached itself, not for its company', { timeout: 60_000 }, async () => {
  const target = {
    name: 'own',
    maxBytes: 200,
    seeds: ['aaaaaaaa'],
    words: ['!!'],
    run: (input: Buffer) => input.includes('!!') && filenameOfText(input.toString('latin1')),
  }
  const { discovered } = await fuzz(target, { seconds: 2, seed: 3, corpus: [] })
  expect(discovered).not.toEqual([])
  expect(discovered.filter((input) => !input.includes('!!')).map(String)).toEqual([])
})

test('pieces of the dictionary are put together', { timeout: 60_000 }, async () => {
  const target = {
    name: 'own',
    maxBytes: 50,
    seeds: ['a'],
    words: ['<!--', '-->'],
    run(input: Buffer) {
      if (input.includes('<!--') && input.includes('-->') && input.indexOf('<!--') > 5) throw new Broken('reached')
    },
  }
  const { findings } = await fuzz(target, { seconds: 5, seed: 7, corpus: [] })
  expect(findings[0]?.message).toContain('reached')
})
