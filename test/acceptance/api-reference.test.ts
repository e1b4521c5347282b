/**
 * The API reference tells the truth: its document passes a validator that is not ours, a generator makes a working
 * client of it, and every call that a page shows is run as it stands and gets what the document promises.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { generateSource } from 'oazapfts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { webFetch } from '../support/oauth-client.ts'
import { createSampleWorld, type SampleWorld } from '../support/sample-world.ts'
import { startStack, type OwnStack } from '../support/stack.ts'
import { startStripeStandIn, type StripeStandIn } from '../support/stripe-stand-in.ts'

interface Media {
  readonly example?: unknown
}

interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly parameters?: readonly { readonly name: string; readonly description?: string }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, Media>> }>>
}

interface Sample {
  readonly operationId: string
  readonly call: string
}

const bash = promisify(execFile)
const GENERATED = fileURLToPath(new URL('../output/generated/', import.meta.url))

/** What only a device that holds a passkey can send; test/browser/passkeys has one. */
const OF_DEVICES = new Set(['post_passkeys', 'post_passkeys_proof', 'delete_passkeys_id', 'post_signin_passkey'])

let stripe: StripeStandIn
let stack: OwnStack
let folder: string
let world: SampleWorld
let document: { paths: Record<string, Record<string, Operation>>; tags: { name: string }[] }
let operations: Map<string, { pointer: string; operation: Operation }>
let ajv: Ajv2020

beforeAll(async () => {
  stripe = await startStripeStandIn()
  stack = await startStack({ env: stripe.env, database: 'shared', operator: true })
  await stack.operate('stripe-setup')
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-samples-'))
  world = await createSampleWorld(stack, stripe, folder)
  document = (await stack.fetch('/api/v1/openapi.json')).json()
  operations = new Map(
    Object.entries(document.paths).flatMap(([address, methods]) =>
      Object.entries(methods).map(([method, operation]) => [
        operation.operationId,
        { pointer: `#/paths/${address.replaceAll('/', '~1')}/${method}`, operation },
      ]),
    ),
  )
  ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema(document, 'api')
})
afterAll(async () => {
  await stack?.stop()
  await stripe?.stop()
  await rm(folder, { recursive: true, force: true })
})

test('the document passes a validator that is not ours', async () => {
  const result = await new Validator().validate(structuredClone(document))
  expect(result.errors).toBeUndefined()
  expect(result.valid).toBe(true)
})

test('every endpoint says what it takes and gives, with samples that fit their schemas', () => {
  const complaints: string[] = []
  for (const { pointer, operation } of operations.values()) {
    for (const { name, description } of operation.parameters ?? [])
      if (description === undefined) complaints.push(`${operation.operationId}: ${name} is not described`)
    const media = [
      ...Object.entries(operation.requestBody?.content ?? {}).map(([type, value]) => ({
        at: `${pointer}/requestBody/content/${type.replace('/', '~1')}`,
        value,
      })),
      ...Object.entries(operation.responses).flatMap(([status, { content = {} }]) =>
        Object.entries(content).map(([type, value]) => ({
          at: `${pointer}/responses/${status}/content/${type.replace('/', '~1')}`,
          value,
        })),
      ),
    ]
    for (const { at, value } of media) {
      if (value.example === undefined) continue
      if (JSON.stringify(value.example).includes('"text"')) complaints.push(`${at}: a field has no example`)
      const fits = schemaAt(at)
      if (!fits(value.example)) complaints.push(`${at}: ${ajv.errorsText(fits.errors)}`)
    }
    const jsonAnswer = Object.values(operation.responses)[0]?.content?.['application/json']
    if (jsonAnswer && jsonAnswer.example === undefined) complaints.push(`${operation.operationId}: no sample answer`)
  }
  expect(complaints).toEqual([])
})

test('every call that the reference shows works as it stands, and its answer is what the document says', async () => {
  const samples = (await Promise.all(document.tags.map(({ name }) => samplesOf(name)))).flat()
  expect(new Set(samples.map(({ operationId }) => operationId))).toEqual(new Set(operations.keys()))
  const complaints: string[] = []
  for (const sample of samples.filter(({ operationId }) => !OF_DEVICES.has(operationId)))
    complaints.push(...(await complaintsAbout(sample)))
  expect(complaints).toEqual([])
})

test('a generator from npm makes a client of the document, and that client publishes', async () => {
  await mkdir(GENERATED, { recursive: true })
  const input = path.join(GENERATED, 'openapi.json')
  const output = path.join(GENERATED, 'client.ts')
  await writeFile(input, JSON.stringify(document))
  await writeFile(output, await generateSource(input))
  const client = await import(output)
  const { token } = await stack.createAccount('plus')
  client.defaults.headers = { Authorization: `Bearer ${token}` }
  client.defaults.fetch = webFetch(stack)

  const created = await client.postSites({ slug: 'generated-client', name: 'Made by a generated client' })
  expect(created).toMatchObject({ status: 201, data: { slug: 'generated-client', state: 'reserved' } })
  const { id } = created.data
  const page = new File(['# From a generated client'], 'index.md')
  expect(await client.postSitesIdUpload(id, { file: page, message: 'One page' })).toMatchObject({
    status: 201,
    data: { version_number: 1, file_count: 1, message: 'One page' },
  })
  const files = [new File(['<h1>Folder</h1>'], 'index.html'), new File(['h1{}'], 'site.css')]
  expect(await client.postSitesIdUploadBundle(id, { files, paths: ['index.html', 'css/site.css'] })).toMatchObject({
    status: 201,
    data: { version_number: 2, file_count: 2 },
  })
  expect((await stack.visit('generated-client')).text()).toContain('<h1>Folder</h1>')

  const versions = await client.getSitesIdVersions(id)
  expect(versions.data.map((version: { version_number: number }) => version.version_number)).toEqual([2, 1])
  await client.postSitesIdVersionsVersionIdPromote(id, versions.data[1].version_id)
  expect((await stack.visit('generated-client')).text()).toContain('From a generated client')
  expect((await client.getSitesIdViews(id, { days: 7 })).data.days).toHaveLength(7)
  expect((await client.patchSitesId(id, { spa_fallback: true })).data.spa_fallback).toBe(true)
  expect(await client.getSitesId('st_none')).toMatchObject({ status: 404, data: { error: 'not_found' } })
  expect((await client.deleteSitesId(id)).status).toBe(204)
  expect((await stack.visit('generated-client')).status).toBe(410)
})

/** The calls of one page of the reference, as a reader copies them. */
async function samplesOf(tag: string): Promise<Sample[]> {
  const page = (await stack.fetch(`/docs/api/${tag.toLowerCase().replaceAll(' ', '-')}`)).text()
  return page.split('<section class="operation"').flatMap((section) => {
    const operationId = /aria-labelledby="([^"]+)"/.exec(section)?.[1]
    const calls = [...section.matchAll(/<code class="call">([^<]*)<\/code>/g)]
    return operationId === undefined ? [] : calls.map(([, call]) => ({ operationId, call: plain(call!) }))
  })
}

async function complaintsAbout({ operationId, call }: Sample): Promise<string[]> {
  const { pointer, operation } = operations.get(operationId)!
  const { variables, replaced } = await world.prepare(operationId)
  const text = Object.entries(replaced).reduce((command, [from, to]) => command.replaceAll(from, to), call)
  const command = text.replace('curl', `curl -sS -w '\\n%{http_code}'`)
  const { stdout } = await bash('bash', ['-euo', 'pipefail', '-c', command], {
    cwd: folder,
    env: { PATH: process.env['PATH']!, CURL_CA_BUNDLE: path.join(stack.dataDir, 'ca', 'ca.pem'), ...variables },
  })
  const body = stdout.slice(0, stdout.lastIndexOf('\n'))
  const status = stdout.slice(stdout.lastIndexOf('\n') + 1)
  const [expected, success] = Object.entries(operation.responses)[0]!
  if (status !== expected) return [`${operationId}: ${status} instead of ${expected}: ${body}\n${text}`]
  if (!success.content?.['application/json']) return []
  const fits = schemaAt(`${pointer}/responses/${expected}/content/application~1json`)
  return fits(JSON.parse(body)) ? [] : [`${operationId}: ${ajv.errorsText(fits.errors)}: ${body}`]
}

function schemaAt(pointer: string): ValidateFunction {
  return ajv.compile({ $ref: `api${pointer.replaceAll('{', '%7B').replaceAll('}', '%7D')}/schema` })
}

function plain(html: string): string {
  return html
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&#96;', '`')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}
