/** Files that look like secrets do not become public by accident, whichever way they come; who means it can say so. */
import { createHash, generateKeyPairSync } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { apiFor, bundleForm } from '../support/api.ts'
import { formFields } from '../support/form-browser.ts'
import { signedInPerson, type Person } from '../support/oauth-client.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

const KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
  type: 'pkcs8',
  format: 'pem',
}) as string
const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'

const SECRETS: Readonly<Record<string, string>> = {
  '.npmrc': '//registry.example/:_authToken=x',
  '.htpasswd': 'a:b',
  '.aws/credentials': '[default]',
  '.env.production': 'KEY=1',
  '.git/config': '[core]',
  '.git/HEAD': 'ref: x',
  'backup/dump.sql': 'create table x',
  'keys/server.pem': KEY,
  deploy_key: KEY,
}
const HARMLESS: Readonly<Record<string, string>> = {
  'index.html': '<h1>Hello</h1>',
  '.well-known/security.txt': 'Contact: x',
  'chain.pem': CERTIFICATE,
  LICENSE: 'MIT',
}

let stack: Stack
let person: Person
let api: ReturnType<typeof apiFor>

beforeAll(async () => {
  stack = await sharedStack()
  person = await signedInPerson(stack)
  api = apiFor(stack, person.account)
})

const newSite = async (): Promise<{ id: string; slug: string }> => (await api.create()).json()

async function served(slug: string, paths: readonly string[]): Promise<string[]> {
  const answers = await Promise.all(paths.map((path) => stack.visit(slug, `/${path}`)))
  return paths.filter((_, index) => answers[index]!.status === 200)
}

describe('the API', () => {
  test('publishes the rest, and the report says what was kept back', async () => {
    const { id, slug } = await newSite()
    const answer = await api.uploadBundle(id, bundleForm({ ...HARMLESS, ...SECRETS }))
    expect(answer.status).toBe(201)
    const { report, file_count } = answer.json()
    expect(report.blocked.map((file: { path: string }) => file.path).toSorted()).toEqual(
      Object.keys(SECRETS).toSorted(),
    )
    expect(report.blocked.find((file: { path: string }) => file.path === 'deploy_key').what).toBe('a private key')
    expect(file_count).toBe(Object.keys(HARMLESS).length)
    expect(await served(slug, Object.keys(SECRETS))).toEqual([])
    expect(await served(slug, Object.keys(HARMLESS))).toEqual(Object.keys(HARMLESS))
    const [live] = (await api.versions(id)).json()
    expect(live.report.blocked).toHaveLength(Object.keys(SECRETS).length)
  })

  test('publishes everything when told to, and warns', async () => {
    const { id, slug } = await newSite()
    const form = bundleForm({ ...HARMLESS, ...SECRETS })
    form.append('allow_secrets', 'true')
    const { report } = (await api.uploadBundle(id, form)).json()
    expect(report.blocked).toEqual([])
    expect(report.warnings.map((warning: { code: string }) => warning.code)).toContain('public_secret')
    expect(await served(slug, ['.npmrc', 'deploy_key'])).toEqual(['.npmrc', 'deploy_key'])
    const unclear = bundleForm(HARMLESS)
    unclear.append('allow_secrets', 'perhaps')
    expect((await api.uploadBundle(id, unclear)).status).toBe(400)
  })

  test.each([undefined, true])('an upload of changed files with allow_secrets: %s', async (allow_secrets) => {
    const { id, slug } = await newSite()
    const { token } = person.account
    const all = Object.entries({ 'index.html': '<p>x</p>', '.env': 'SECRET=1' })
    const files = all.map(([path, content]) => ({
      path,
      size: content.length,
      sha256: createHash('sha256').update(content).digest('hex'),
    }))
    const started = await stack.fetch(`/api/v1/sites/${id}/uploads`, { token, json: { files, allow_secrets } })
    const upload = `/api/v1/sites/${id}/uploads/${started.json().upload_id}`
    for (const [index, [, body]] of all.entries())
      await stack.fetch(`${upload}/blobs/${files[index]!.sha256}`, { token, method: 'PUT', body })
    const finished = (await stack.fetch(`${upload}/finish`, { token, method: 'POST' })).json()
    expect(finished.report.blocked.map((file: { path: string }) => file.path)).toEqual(allow_secrets ? [] : ['.env'])
    expect(await served(slug, ['.env'])).toEqual(allow_secrets ? ['.env'] : [])
  })
})

describe('the dashboard', () => {
  async function publish(id: string, ticked: boolean) {
    const page = await person.browser.open(`/sites/${id}`)
    expect(page.text()).toContain('name="allow_secrets"')
    const form = new FormData()
    form.append('csrf', formFields(page.text(), `/sites/${id}/publish`)['csrf']!)
    for (const [path, content] of Object.entries({ 'index.html': '<p>x</p>', '.htpasswd': 'a:b' })) {
      form.append('paths', path)
      form.append('files', new File([content], path))
    }
    if (ticked) form.append('allow_secrets', 'on')
    return person.browser.open(`/sites/${id}/publish`, { body: form, headers: { origin: stack.baseUrl } })
  }

  test('publishes nothing, names the file, and goes on when the box is ticked', async () => {
    const { id, slug } = await newSite()
    const refused = await publish(id, false)
    expect(refused.status).toBe(400)
    expect(refused.text()).toContain('looks like a file of credentials')
    expect((await stack.visit(slug)).status).toBe(404)
    expect((await publish(id, true)).status).toBe(303)
    expect(await served(slug, ['.htpasswd'])).toEqual(['.htpasswd'])
  })
})
