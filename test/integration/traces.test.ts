/** Traces of both planes as a collector gets them, with the id that a page of an error shows. */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTracer } from '../../shared/running/traces.ts'
import { startEdgeFixture, type EdgeFixture } from '../support/edge-fixture.ts'
import { startServer } from '../support/http-server.ts'

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: string }
}
interface SentSpan {
  readonly service: string
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status?: { readonly code: number }
  readonly attributes: readonly Attribute[]
}
interface Sent {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[]
  }[]
}

const spans: SentSpan[] = []
const collector = http.createServer(async (request, response) => {
  const sent = (await json(request)) as Sent
  for (const { resource, scopeSpans } of sent.resourceSpans)
    for (const span of scopeSpans.flatMap((scope) => scope.spans))
      spans.push({ ...span, service: resource.attributes[0]!.value.stringValue! })
  response.end('{}')
})
/** Says what trace it was told to be part of. */
const control = http.createServer((request, response) => {
  request.resume()
  response.end(String(request.headers['traceparent']))
})
let endpoint: string
let fixture: EdgeFixture

const listen = async (server: http.Server): Promise<string> => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

beforeAll(async () => {
  endpoint = await listen(collector)
  fixture = await startEdgeFixture({
    env: { EDGE_WORKERS: '1', CONTROL_URLS: await listen(control), OTEL_EXPORTER_OTLP_ENDPOINT: endpoint },
  })
})
afterAll(async () => {
  await fixture?.stop()
  for (const server of [collector, control]) server.close().closeAllConnections()
})

/** The span that a collector gets within a while. */
async function sentSpan(where: (span: SentSpan) => boolean): Promise<SentSpan> {
  await expect.poll(() => spans.some(where), { interval: 100 }).toBe(true)
  return spans.find(where)!
}
const attribute = (span: SentSpan | undefined, name: string): string | undefined => {
  const value = span?.attributes.find(({ key }) => key === name)?.value
  return value?.stringValue ?? value?.intValue
}

test('a control that fails: the span has the id that the caller got, its route and its parent', async () => {
  const tracer = startTracer('dropway-control', { url: `${endpoint}/v1/traces`, headers: {}, sample: 1 })!
  const server = await startServer(
    [
      {
        method: 'GET',
        path: '/api/v1/broken/:id',
        handle: () => {
          throw new Error('by the test')
        },
      },
    ],
    { tracer },
  )
  const parent = { trace: '4bf92f3577b34da6a3ce929d0e0e4736', span: '00f067aa0ba902b7' }
  const answer = await fetch(`${server.url}/api/v1/broken/secret-7`, {
    headers: { traceparent: `00-${parent.trace}-${parent.span}-01` },
  })
  const { id } = (await answer.json()) as { id: string }
  await tracer.stop()
  const span = await sentSpan(({ service }) => service === 'dropway-control')
  expect(span).toMatchObject({
    name: 'GET /api/v1/broken/:id',
    traceId: parent.trace,
    parentSpanId: parent.span,
    status: { code: 2 },
  })
  expect(attribute(span, 'dropway.error_id')).toBe(id)
  expect(attribute(span, 'http.response.status_code')).toBe('500')
  expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano))
  expect(JSON.stringify(span)).not.toContain('secret-7')
})

test('an edge begins the trace, and control is told of it; what a visitor says of traces is not passed on', async () => {
  const theirs = '00-11111111111111111111111111111111-2222222222222222-01'
  const { text } = await fixture.h1('localhost', '/api/v1/me?token=secret', { headers: { traceparent: theirs } })
  expect(text).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  expect(text).not.toBe(theirs)
  const span = await sentSpan(({ spanId }) => text.includes(spanId))
  expect(span.service).toBe('dropway-edge')
  expect(attribute(span, 'url.path')).toBe('/api/v1/me')
  expect(JSON.stringify(span)).not.toContain('secret')
})

test('a file that an edge cannot show: the span has the id of the error page', async () => {
  const lost = ['lost.txt', { hash: '0'.repeat(64), size: 10, type: 'text/plain; charset=utf-8' }]
  const manifest = await fixture.putBlob(
    Buffer.from(JSON.stringify({ v: 1, files: [lost], redirects: [], headers: [], unserved: [] })),
  )
  await fixture.publish('broken.localhost', {}, { manifest, versions: [[1, manifest]] })
  const { status, text } = await fixture.h1('broken.localhost', '/lost.txt')
  const [id] = /err_\w+/.exec(text) ?? []
  expect([status, id]).toEqual([500, expect.any(String)])
  expect(await sentSpan((span) => attribute(span, 'dropway.error_id') === id)).toMatchObject({
    service: 'dropway-edge',
    status: { code: 2 },
  })
})
