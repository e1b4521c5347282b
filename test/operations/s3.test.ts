/** Content in an S3-compatible store: published through one control, served by edges that share nothing but the bucket. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startFleet, type Fleet } from '../support/fleet.ts'
import { startTestS3, type TestS3 } from '../support/s3.ts'

let folder: string
let store: TestS3
let fleet: Fleet

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-s3-'))
  store = await startTestS3(path.join(folder, 's3'))
  const storeFor = (name: string) => store.url({ cache: path.join(folder, name) })
  fleet = await startFleet({ edges: 1, controls: 1, env: { BLOB_STORE: storeFor('control') } })
  const [first] = fleet.edges
  for (const name of ['edge-a', 'edge-b']) await fleet.addEdge({ BLOB_STORE: storeFor(name) })
  // It shares a cache with control.
  await fleet.removeEdge(first!)
})

afterAll(async () => {
  await fleet?.stop()
  // Closed by the test already, unless that failed before.
  await store?.close().catch(() => {})
  await rm(folder, { recursive: true, force: true })
})

test('the doctor names the bucket, not its secret', async () => {
  const { stdout } = await fleet.admin('doctor')
  expect(stdout).toContain('s3://drops')
  expect(stdout).not.toContain('S3RVER')
})

test('what is published is served by every edge, also when the store is away', async () => {
  const account = await fleet.createAccount('plus')
  const site = await fleet.publish(account, { 'index.html': '<p>from the bucket</p>', 'a.bin': 'x'.repeat(3_000_000) })
  for (const edge of fleet.edges) {
    fleet.balancer.setTargets([edge.port])
    expect((await fleet.visit(site.slug)).text()).toContain('from the bucket')
    expect((await fleet.visit(site.slug, '/a.bin')).body).toHaveLength(3_000_000)
    expect((await fleet.visit(site.slug, '/a.bin', { headers: { range: 'bytes=5-9' } })).text()).toBe('xxxxx')
  }
  expect(await readdir(path.join(folder, 'edge-a', 'copies'))).not.toHaveLength(0)
  await store.close()
  expect((await fleet.visit(site.slug)).text()).toContain('from the bucket')
  expect((await fleet.visit(site.slug, '/a.bin')).body).toHaveLength(3_000_000)
  const refused = await fleet.fetch(`/api/v1/sites/${site.id}/upload`, {
    token: account.token,
    body: formOf('<p>never stored</p>'),
  })
  expect(refused.status).toBeGreaterThanOrEqual(500)
  expect((await fleet.visit(site.slug)).text()).toContain('from the bucket')
})

function formOf(page: string): FormData {
  const body = new FormData()
  body.append('file', new File([page], 'index.html'))
  return body
}
