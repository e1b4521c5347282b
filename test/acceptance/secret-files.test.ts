/**
 * Files that are not for visitors, whichever way they come: what looks like a secret does not become public by accident
 * (who means it can say so), and what is written for another host is read and not served.
 */
import { createHash, generateKeyPairSync } from 'node:crypto'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { Client } from '@modelcontextprotocol/client'
import { beforeAll, describe, expect, test } from 'vitest'
import yazl from 'yazl'
import { apiFor, bundleForm, fileForm } from '../support/api.ts'
import { formFields } from '../support/form-browser.ts'
import { connectWithToken } from '../support/mcp-client.ts'
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
  '.NPMRC': 'token',
  'old/.GIT/config': '[core]',
  '.envrc': 'export KEY=1',
  '.env-local': 'KEY=1',
  'config/master.key': '0123456789abcdef',
  'prod.tfvars': 'password = 1',
  'notes/todo.txt': `Do not lose this:\n\n${KEY}`,
  'photo.png': KEY,
  'account.json': JSON.stringify({ private_key: KEY }),
  'guide.html': `<pre>${KEY}</pre>`,
}
const HARMLESS: Readonly<Record<string, string>> = {
  'index.html': '<h1>Hello</h1>',
  '.well-known/security.txt': 'Contact: x',
  'chain.pem': CERTIFICATE,
  'chain.txt': CERTIFICATE,
  '.env.example': 'KEY=',
  'how-to.html': '<p>A key lies between -----BEGIN PRIVATE KEY----- and its end.',
  LICENSE: 'MIT',
}

let stack: Stack
let person: Person
let api: ReturnType<typeof apiFor>
let assistant: Client

beforeAll(async () => {
  stack = await sharedStack()
  person = await signedInPerson(stack)
  api = apiFor(stack, person.account)
  assistant = await connectWithToken(stack, person.account.token, 'modern')
})

interface Site {
  readonly id: string
  readonly slug: string
}

const newSite = async (): Promise<Site> => (await api.create()).json()

async function served(slug: string, paths: readonly string[]): Promise<string[]> {
  const answers = await Promise.all(paths.map((path) => stack.visit(slug, `/${path}`)))
  return paths.filter((_, index) => answers[index]!.status === 200)
}

const HOST_FILES: Files = {
  'netlify.toml': '[build]\ncommand = "make"\n[[redirects]]\nfrom = "/old"\nto = "/new"\nstatus = 302\n',
  'vercel.json': JSON.stringify({ cleanUrls: true }),
  'firebase.json': JSON.stringify({
    hosting: { headers: [{ source: '**', headers: [{ key: 'X-Host', value: 'firebase' }] }] },
  }),
  'staticwebapp.config.json': '{ not JSON',
  '.htaccess': 'Deny from all',
  'web.config': '<configuration/>',
  '_worker.js': 'export default {}',
}
const pathOf = ({ path }: { path: string }): string => path

type Files = Readonly<Record<string, string>>

async function zipOf(files: Files): Promise<Buffer> {
  const zip = new yazl.ZipFile()
  for (const [name, content] of Object.entries(files)) zip.addBuffer(Buffer.from(content), name)
  zip.end()
  return buffer(zip.outputStream as Readable)
}

/** Sends files as the client does: names and hashes first, then the bytes that are missing. */
async function uploadChanged(id: string, given: Files, options: Record<string, unknown> = {}) {
  const { token } = person.account
  const all = Object.entries(given)
  const files = all.map(([path, content]) => ({
    path,
    size: Buffer.byteLength(content),
    sha256: createHash('sha256').update(content).digest('hex'),
  }))
  const started = await stack.fetch(`/api/v1/sites/${id}/uploads`, { token, json: { files, ...options } })
  const { upload_id, missing } = started.json<{ upload_id: string; missing: readonly string[] }>()
  const upload = `/api/v1/sites/${id}/uploads/${upload_id}`
  for (const [index, [, body]] of all.entries())
    if (missing.includes(files[index]!.sha256))
      await stack.fetch(`${upload}/blobs/${files[index]!.sha256}`, { token, method: 'PUT', body })
  return (await stack.fetch(`${upload}/finish`, { token, method: 'POST' })).json()
}

async function postFolder(id: string, files: Files, isTicked: boolean) {
  const page = await person.browser.open(`/sites/${id}`)
  expect(page.text()).toContain('name="allow_secrets"')
  const form = new FormData()
  form.append('csrf', formFields(page.text(), `/sites/${id}/publish`)['csrf']!)
  for (const [path, content] of Object.entries(files)) {
    form.append('paths', path)
    form.append('files', new File([content], path))
  }
  if (isTicked) form.append('allow_secrets', 'on')
  return person.browser.open(`/sites/${id}/publish`, { body: form, headers: { origin: stack.baseUrl } })
}

const blockedIn = (answer: { report: { blocked: readonly { path: string }[] } }): string[] =>
  answer.report.blocked.map(({ path }) => path)
/** The paths that a refusal names. */
const namedIn = (text: string, files: Files): string[] =>
  Object.keys(files).filter((path) => text.includes(`"${path}" looks like`))

/** A refusal names no more files; a report names them all. */
const MAX_NAMED = 5

/** Every way in: what it keeps back, or refuses, of what it is given. */
const DOORS: Readonly<Record<string, (site: Site, files: Files) => Promise<string[]>>> = {
  'files of the API': async ({ id }, files) => blockedIn((await api.uploadBundle(id, bundleForm(files))).json()),
  'a zip of the API': async ({ id }, files) =>
    blockedIn((await api.uploadBundle(id, fileForm('site.zip', await zipOf(files)))).json()),
  'changed files of the API': async ({ id }, files) => blockedIn(await uploadChanged(id, files)),
  'the dashboard': async ({ id }, files) => {
    const refused = await postFolder(id, files, false)
    return namedIn(refused.text().replaceAll('&quot;', '"'), files)
  },
  'a tool of MCP': async ({ slug }, files) => {
    const sent = Object.entries(files).map(([path, content]) => ({ path, content }))
    const { content } = await assistant.callTool({ name: 'service_publish_files', arguments: { slug, files: sent } })
    return namedIn((content[0] as { text: string }).text, files)
  },
}

describe.each(Object.entries(DOORS))('%s', (name, door) => {
  test('lets through what is harmless, and none of the secrets', async () => {
    const secrets = Object.entries(SECRETS)
    const atOnce = name.endsWith('the API') ? secrets.length : MAX_NAMED
    const refused: string[] = []
    for (let at = 0; at < secrets.length; at += atOnce)
      refused.push(
        ...(await door(await newSite(), { ...HARMLESS, ...Object.fromEntries(secrets.slice(at, at + atOnce)) })),
      )
    expect(refused.toSorted()).toEqual(Object.keys(SECRETS).toSorted())
  })

  test('takes redirects and headers from the files of other hosts, and publishes none of these', async () => {
    const site = await newSite()
    await door(site, { 'index.html': '<h1>Hello</h1>', ...HOST_FILES })
    expect(await served(site.slug, Object.keys(HOST_FILES))).toEqual([])
    const [page, old, about] = await Promise.all(
      ['/', '/old', '/about.html'].map((path) => stack.visit(site.slug, path)),
    )
    expect(page!.headers['x-host']).toBe('firebase')
    expect([old!.status, old!.headers['location']]).toEqual([302, '/new'])
    expect([about!.status, about!.headers['location']]).toEqual([308, '/about'])
    const [live] = (await api.versions(site.id)).json()
    const told = (code: string): string[] =>
      live.report.warnings.filter((warning: { code: string }) => warning.code === code).map(pathOf)
    expect(told('other_host').toSorted()).toEqual(Object.keys(HOST_FILES).toSorted())
    expect(new Set(told('ignored_rule'))).toEqual(
      new Set(['.htaccess', '_worker.js', 'netlify.toml', 'staticwebapp.config.json', 'web.config']),
    )
  })
})

test('a key that was allowed once has to be allowed again', async () => {
  const { id, slug } = await newSite()
  const files = { 'index.html': '<h1>Hello</h1>', 'notes.txt': KEY }
  expect(blockedIn(await uploadChanged(id, files, { allow_secrets: true }))).toEqual([])
  expect(await served(slug, ['notes.txt'])).toEqual(['notes.txt'])
  const again = await uploadChanged(id, { ...files, 'index.html': '<h1>Hello again</h1>' })
  expect(blockedIn(again)).toEqual(['notes.txt'])
  expect(await served(slug, ['notes.txt'])).toEqual([])
})

test('more secrets than a report names are kept back all the same, also what a former version had of them', async () => {
  const { id, slug } = await newSite()
  const secrets = Array.from({ length: 120 }, (_, at): [string, string] => [`${at}/.env`, `KEY=${at}`])
  const files = { 'index.html': '<h1>Hello</h1>', ...Object.fromEntries(secrets) }
  const allowed = bundleForm(files)
  allowed.append('allow_secrets', 'true')
  expect((await api.uploadBundle(id, allowed)).status).toBe(201)
  const paths = secrets.map(([path]) => path).slice(90)
  expect(await served(slug, paths)).toEqual(paths)
  expect(blockedIn((await api.uploadBundle(id, bundleForm(files))).json())).toHaveLength(100)
  expect(await served(slug, paths)).toEqual([])
})

test('a promoted preview brings nothing back that its publish kept back, nor does going back to a version before', async () => {
  const { id, slug } = await newSite()
  const harmless = (await api.uploadBundle(id, bundleForm(HARMLESS))).json()
  const files = { ...HARMLESS, ...SECRETS }
  const withSecrets = bundleForm(files)
  withSecrets.append('allow_secrets', 'true')
  await api.uploadBundle(id, withSecrets)
  expect(await served(slug, Object.keys(SECRETS))).toEqual(Object.keys(SECRETS))
  const draft = bundleForm(files)
  draft.append('preview', 'draft')
  const preview = (await api.uploadBundle(id, draft)).json()
  expect((await api.promote(id, preview.version_id)).status).toBe(200)
  expect(await served(slug, Object.keys(SECRETS))).toEqual([])
  expect((await api.promote(id, harmless.version_id)).status).toBe(200)
  expect(await served(slug, Object.keys(SECRETS))).toEqual([])
})

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
    const finished = await uploadChanged(id, { 'index.html': '<p>x</p>', '.env': 'SECRET=1' }, { allow_secrets })
    expect(blockedIn(finished)).toEqual(allow_secrets ? [] : ['.env'])
    expect(await served(slug, ['.env'])).toEqual(allow_secrets ? ['.env'] : [])
  })
})

describe('the dashboard', () => {
  const publish = (id: string, isTicked: boolean) =>
    postFolder(id, { 'index.html': '<p>x</p>', '.htpasswd': 'a:b' }, isTicked)

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
