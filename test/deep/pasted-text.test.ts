/** A pasted text goes through control without being kept in memory. On a stack of its own: neighbours would be weighed too. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { formFields } from '../support/form-browser.ts'
import { signedInPerson } from '../support/oauth-client.ts'
import { residentMb } from '../support/processes.ts'
import { startStack, type OwnStack } from '../support/stack.ts'

const MAX_GROWTH_MB = 60

let stack: OwnStack

beforeAll(async () => {
  stack = await startStack({ operator: true })
})
afterAll(() => stack.stop())

test('sixty megabytes grow control by less than themselves', async () => {
  const { browser } = await signedInPerson(stack, 'plus')
  async function paste(text: string): Promise<void> {
    const page = await browser.open('/sites/new')
    const form = new FormData()
    form.append('csrf', formFields(page.text(), '/sites/new')['csrf']!)
    form.append('text', text)
    const answer = await browser.open('/sites/new', { body: form, headers: { origin: stack.baseUrl } })
    expect(answer.status, answer.text().slice(0, 2000)).toBe(303)
  }
  // What is loaded for the first of them stays, whatever its length.
  await paste('<!doctype html><title>Short</title>')
  const { control } = stack.pids()
  const before = residentMb(control!)
  await paste(`<!doctype html><title>Long</title><p>${'x'.repeat(60_000_000)}`)
  const grown = residentMb(control!) - before
  console.log(`control grew by ${Math.round(grown)} MB`)
  expect(grown).toBeLessThan(MAX_GROWTH_MB)
})
