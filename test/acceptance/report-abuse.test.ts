/** A visitor who meets a page that should not be there can say so, whatever the plan or state of the drop. */
import { beforeAll, expect, test } from 'vitest'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
beforeAll(async () => {
  stack = await sharedStack()
})

test('every live drop leads to the report page, with its address filled in; a paid one has no badge for it', async () => {
  for (const plan of ['free', 'plus'] as const) {
    const { slug } = await stack.publish(await stack.createAccount(plan), '<h1>Bait</h1>')
    expect((await stack.visit(slug)).text().includes('/report?url=')).toBe(plan === 'free')
    const answer = await stack.visit(slug, '/.dropway/report')
    expect([answer.status, answer.header('cache-control')]).toEqual([302, 'no-store'])
    const location = new URL(answer.header('location')!)
    expect(location.origin).toBe(stack.baseUrl)
    const page = await stack.fetch(location.pathname + location.search)
    expect([page.status, page.text()]).toEqual([200, expect.stringContaining(`value="https://${slug}.`)])
  }
})

test('so do the pages of what was there', async () => {
  const account = await stack.createAccount('plus')
  const [deleted, removed] = [await stack.publish(account, 'one'), await stack.publish(account, 'two')]
  await stack.fetch(`/api/v1/sites/${deleted.id}`, { token: account.token, method: 'DELETE' })
  expect((await stack.operate('takedown', removed.slug, '--reason', 'phishing')).code).toBe(0)
  for (const { slug } of [deleted, removed]) {
    const page = await stack.visit(slug)
    expect([page.status, page.text()]).toEqual([410, expect.stringContaining(`/report?url=https%3A%2F%2F${slug}.`)])
  }
})
