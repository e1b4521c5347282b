/** Pasted text is content like any file: the plan says how much of it there may be. */
import { beforeAll, expect, test } from 'vitest'
import { formFields } from '../support/form-browser.ts'
import { signedInPerson, type Person } from '../support/oauth-client.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let person: Person

beforeAll(async () => {
  stack = await sharedStack()
  person = await signedInPerson(stack, 'free')
})

async function paste(text: string, fields: Record<string, string> = {}, { browser } = person) {
  const page = await browser.open('/sites/new')
  const form = new FormData()
  form.append('csrf', formFields(page.text(), '/sites/new')['csrf']!)
  for (const [name, value] of Object.entries({ ...fields, text })) form.append(name, value)
  return browser.open('/sites/new', { body: form, headers: { origin: stack.baseUrl } })
}

test.each([
  ['five megabytes', 5_000_000, 303],
  ['more than the plan holds', 10_100_000, 413],
])('%s', async (_, size, status) => {
  const answer = await paste(`<p>${'x'.repeat(size)}</p>`)
  expect(answer.status, answer.text().slice(0, 2000)).toBe(status)
  if (status === 413)
    expect(answer.text()).toMatch(/larger than 10 MB\. Make it smaller, or publish it from an account/)
})

test('as much as a larger plan takes', async () => {
  const payer = await signedInPerson(stack, 'plus')
  const slug = `long-${Date.now().toString(36)}`
  const answer = await paste(`<!doctype html><title>Long</title><p>${'x'.repeat(20_000_000)}`, { slug }, payer)
  expect(answer.status, answer.text().slice(0, 2000)).toBe(303)
  expect((await stack.visit(slug)).body.length).toBeGreaterThan(20_000_000)
})

test('a name stays a name', async () => {
  expect((await paste('<p>x</p>', { name: 'x'.repeat(1_100_000) })).status).toBe(400)
})

test('a preview that is refused says so in its frame', async () => {
  const answer = await person.browser.post('/preview', new URLSearchParams({ csrf: 'of another session', text: '# x' }))
  expect(answer.status).toBe(403)
  expect(answer.text()).toContain('No preview')
  expect(answer.header('content-security-policy')).toMatch(/^sandbox;.*frame-ancestors 'self'/)
})
