/**
 * U+0000 and halves of surrogate pairs are no text: every field of every operation that the API's own document lists, and
 * the dashboard's forms, answer 400. The document says what there is, so that a new operation is asked as well.
 */
import { beforeAll, expect, test } from 'vitest'
import { FormBrowser } from '../support/form-browser.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

interface Schema {
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
}
interface Operation {
  readonly security: readonly Readonly<Record<string, unknown>>[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: Schema; example?: unknown }>> }
}
type Path = readonly string[]

/** As JSON writes them. */
const NO_TEXTS = [String.raw`a\u0000b`, String.raw`\ud800`, String.raw`x\udc00`]
/** Pages, which are content. */
const CONTENT = new Set(['markdown'])

let stack: Stack
let owner: Account
let siteId: string
let browser: FormBrowser
let operations: { method: string; address: string; operation: Operation }[]

beforeAll(async () => {
  stack = await sharedStack()
  const password = 'correct horse battery staple'
  owner = await stack.createAccount('business', { password })
  siteId = (await stack.publish(owner, '<title>x</title>')).id
  browser = new FormBrowser(stack, '198.51.100.34')
  await browser.send('/signin', { email: owner.email, password })
  const { paths } = (await stack.fetch('/api/v1/openapi.json')).json() as {
    paths: Record<string, Record<string, Operation>>
  }
  operations = Object.entries(paths).flatMap(([address, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), address, operation })),
  )
})

/** Where strings of any text are: those of a fixed form refuse it by that form. */
function textsIn(schema: Schema, at: Path = []): Path[] {
  const here = [schema.type].flat().includes('string') && !schema.enum && schema.format !== 'binary' ? [at] : []
  return [
    ...here,
    ...(schema.anyOf ?? []).flatMap((one) => textsIn(one, at)),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, one]) => textsIn(one, [...at, name])),
    ...(schema.items ? textsIn(schema.items, [...at, '0']) : []),
  ]
}

/** The sample with a mark at that place. */
function withMark(sample: unknown, [name, ...rest]: Path): unknown {
  if (name === undefined) return 'MARK'
  if (/^\d+$/.test(name)) return [withMark(Array.isArray(sample) ? sample[0] : undefined, rest)]
  const fields = (sample ?? {}) as Record<string, unknown>
  return { ...fields, [name]: withMark(fields[name], rest) }
}

/** A drop of the owner's: who may speak about one is known before what they say is looked at. */
const pathOf = (address: string): string =>
  address.replace(/^\/sites\/\{id\}/, `/sites/${siteId}`).replaceAll(/\{\w+\}/g, 'x')

test('every text of every JSON body', async () => {
  const accepted: string[] = []
  let asked = 0
  for (const { method, address, operation } of operations) {
    const media = operation.requestBody?.content['application/json']
    if (!media) continue
    for (const place of textsIn(media.schema).filter((at) => !CONTENT.has(at.at(-1) ?? '')))
      for (const bad of NO_TEXTS) {
        const body = JSON.stringify(withMark(media.example, place)).replace('MARK', bad)
        const headers = { 'content-type': 'application/json' }
        const isForSessions = operation.security.some((one) => 'session' in one)
        const url = `/api/v1${pathOf(address.replace(/^\/api\/v1/, ''))}`
        const answer = isForSessions
          ? await browser.open(url, { method, body, headers: { ...headers, origin: stack.baseUrl } })
          : await stack.fetch(url, { token: owner.token, method, body, headers, from: '198.51.100.35' })
        asked++
        if (answer.status !== 400 || !answer.text().includes('surrogate'))
          accepted.push(`${method} ${address} ${place.join('.')}: ${answer.status} ${answer.text().slice(0, 80)}`)
      }
  }
  expect(asked).toBeGreaterThan(30)
  expect(accepted).toEqual([])
})

test('every text of every form with files', async () => {
  const accepted: string[] = []
  let asked = 0
  for (const { method, address, operation } of operations) {
    const media = operation.requestBody?.content['multipart/form-data']
    if (!media) continue
    for (const [name] of textsIn(media.schema).filter((at) => at.length <= 2)) {
      const body = new FormData()
      body.append(name!, 'a\0b')
      body.append('file', new File(['<p>'], 'index.html'))
      const site = (await stack.fetch('/api/v1/sites', { token: owner.token, method: 'POST', json: {} })).json() as {
        id: string
      }
      const url = `/api/v1${address.replace(/^\/api\/v1/, '').replaceAll(/\{\w+\}/g, site.id)}`
      const answer = await stack.fetch(url, { token: owner.token, method, body, from: '198.51.100.35' })
      asked++
      if (answer.status !== 400 || !answer.text().includes('surrogate'))
        accepted.push(`${method} ${address} ${name}: ${answer.status} ${answer.text().slice(0, 80)}`)
    }
  }
  expect(asked).toBeGreaterThan(3)
  expect(accepted).toEqual([])
})

test('addresses', async () => {
  const ask = async (path: string): Promise<number> => (await stack.fetch(path, { token: owner.token })).status
  expect(await ask('/api/v1/sites/a%00b')).toBe(400)
  expect(await ask('/api/v1/gallery?cursor=%00')).toBe(400)
  expect(await ask('/signin?next=%00')).toBe(400)
})

test("the dashboard's forms", async () => {
  const site = await stack.publish(owner, '<p>')
  const settings = `/sites/${site.id}/settings`
  const FORMS: [page: string, action: string, field: string][] = [
    ['/account/organisation', '/account/organisation/create', 'name'],
    ['/account/organisation', '/account/organisation/invite', 'email'],
    [settings, `${settings}/general`, 'name'],
    [settings, `${settings}/general`, 'slug'],
    [settings, `${settings}/password`, 'password'],
    ['/report', '/report', 'detail'],
  ]
  for (const [page, action, field] of FORMS) {
    expect((await browser.send(page, { [field]: 'a\0b' }, action)).status, `${action} ${field}`).toBe(400)
    const fields = new URLSearchParams({ [field]: 'MARK' }).toString()
    const answer = await browser.open(action, {
      method: 'POST',
      body: fields.replace('MARK', '%ED%A0%80'),
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: stack.baseUrl },
    })
    expect(answer.status, `${action} ${field}`).toBe(400)
  }
})
