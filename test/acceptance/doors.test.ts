/** Who gets in at control's door, and what is said to those who do not. */
import { beforeAll, expect, test } from 'vitest'
import { exchange, statusOf } from '../support/raw-http.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
beforeAll(async () => {
  stack = await sharedStack()
})

const direct = (head: string, body = ''): Promise<string> =>
  exchange(stack.controlPort, `${head.trim().replaceAll('\n', '\r\n')}\r\nConnection: close\r\n\r\n${body}`)

test.each(['evil.example', 'evil.example:8787', 'localhost.evil.example', '192.168.0.1', 'a@['])(
  'a request for %s is not for this service',
  async (host) => {
    for (const path of ['/', '/signin', '/api/v1/drops', '/dev/mail', '/mcp'])
      expect(statusOf(await direct(`GET ${path} HTTP/1.1\nHost: ${host}`))).toBe(421)
    // Monitors and edges know a control by other names.
    expect(statusOf(await direct(`GET /healthz HTTP/1.1\nHost: ${host}`))).toBe(200)
  },
)

test('figures are for those who ask control itself, not for the world', async () => {
  const figures = await direct(`GET /metrics HTTP/1.1\nHost: control-1:8787`)
  expect(figures).toMatch(/dropway_control_event_loop_delay_p999_ms \d/)
  expect(figures).toMatch(/dropway_control_event_loop_delay_max_ms \d/)
  expect((await stack.fetch('/metrics')).status).toBe(404)
  expect(statusOf(await direct(`GET /metrics HTTP/1.1\nHost: x\nX-Forwarded-For: 203.0.113.9`))).toBe(404)
})

test('figures of a control name routes and status, queues, jobs and the pool', async () => {
  expect((await stack.fetch('/api/v1/sites/st_figures')).status).toBe(401)
  expect((await stack.fetch('/there-is-no-such-page')).status).toBe(404)
  const queues = ['routes', 'mails', 'webhooks', 'compression', 'domain checks']
  const lines = [
    /^dropway_control_requests_total\{route="\/api\/v1\/sites\/:id",method="GET",status="401"\} \d+$/m,
    /^dropway_control_requests_total\{route="none",method="GET",status="404"\} \d+$/m,
    /^dropway_control_request_seconds_bucket\{route="\/api\/v1\/sites\/:id",le="\+Inf"\} \d+$/m,
    /^dropway_control_request_seconds_count\{route="\/api\/v1\/sites\/:id"\} \d+$/m,
    /^dropway_control_job_last_success_timestamp_seconds\{job_name="lifecycle"\} 1\d{9}/m,
    /^dropway_control_job_interval_seconds\{job_name="blobs"\} 3600$/m,
    /^dropway_control_pool_connections 16$/m,
    /^dropway_control_pool_waiting \d+$/m,
    /^dropway_control_database_seconds \d/m,
    /^dropway_control_redis_seconds \d/m,
    /^dropway_control_edges [1-9]/m,
    /^dropway_control_differing_planes 0$/m,
    ...queues.map((queue) => new RegExp(`^dropway_control_queue_age_seconds\\{queue="${queue}"\\} \\d`, 'm')),
  ]
  let figures = ''
  // A job runs for the first time, and an edge says that it lives, whenever the machine lets them.
  const missing = async (): Promise<RegExp[]> => {
    figures = await direct(`GET /metrics HTTP/1.1\nHost: control-1:8787`)
    return lines.filter((line) => !line.test(figures))
  }
  await expect.poll(missing).toEqual([])
  // No address, host or id of anyone is a label.
  expect(figures).not.toContain('st_figures')
  expect(figures).not.toContain('there-is-no-such-page')
})

/** Request lines, headers and bodies that no program of good will sends. */
const MALFORMED = [
  'POST //a@[/ HTTP/1.1\nHost: localhost\nContent-Length: 0',
  'GET //a@[/ HTTP/1.1\nHost: localhost',
  'POST http://[::/ HTTP/1.1\nHost: localhost\nContent-Length: 0',
  'GET /sites/%ff%fe HTTP/1.1\nHost: localhost',
  'GET /api/v1/sites/%00 HTTP/1.1\nHost: localhost',
  'GET /api/v1/sites/%c0%af HTTP/1.1\nHost: localhost',
  'GET /?%ff=%zz&[]&a[b]=c HTTP/1.1\nHost: localhost',
  'OPTIONS * HTTP/1.1\nHost: localhost',
  'TRACE / HTTP/1.1\nHost: localhost',
  'CONNECT a:1 HTTP/1.1\nHost: localhost',
  'FOO / HTTP/1.1\nHost: localhost',
  'GET / HTTP/1.1\nHost: localhost\nHost: localhost',
  'GET / HTTP/1.1',
  'GET / HTTP/1.0',
  'GET / HTTP/1.1\nHost: localhost\nContent-Length: -1',
  'POST /signin HTTP/1.1\nHost: localhost\nContent-Length: 5\nTransfer-Encoding: chunked',
  'POST /signin HTTP/1.1\nHost: localhost\nTransfer-Encoding: gzip',
  'POST /signin HTTP/1.1\nHost: localhost\nContent-Type: application/x-www-form-urlencoded\nContent-Length: 0',
  'POST /api/v1/drops HTTP/1.1\nHost: localhost\nContent-Type: multipart/form-data\nContent-Length: 0',
  'POST /api/v1/drops HTTP/1.1\nHost: localhost\nContent-Type: multipart/form-data; boundary=\nContent-Length: 0',
  'POST /api/v1/drops-md HTTP/1.1\nHost: localhost\nContent-Type: application/json\nContent-Length: 0',
  'GET / HTTP/1.1\nHost: localhost\nCookie: =;;;=a;__Host-dropway_session=%00',
  'GET /sites HTTP/1.1\nHost: localhost\nCookie: __Host-dropway_session=a; __Host-dropway_session=b',
  'GET /api/v1/me HTTP/1.1\nHost: localhost\nAuthorization: Bearer dw_\u00ff\u00fe',
  'GET /api/v1/me HTTP/1.1\nHost: localhost\nAuthorization: Bearer dwo_' + 'x'.repeat(20_000),
  'GET / HTTP/1.1\nHost: localhost\nX-Forwarded-For: ,,,::::,[',
  'GET / HTTP/1.1\nHost: localhost\nAccept-Language: ' + 'a,'.repeat(5000),
  `GET /${'a/'.repeat(8000)} HTTP/1.1\nHost: localhost`,
]

test.each(MALFORMED.map((head) => [head.slice(0, 90), head]))('%j is no fault of ours', async (_, head) => {
  const own = await direct(head)
  expect(statusOf(own), own.slice(0, 300)).toBeLessThan(500)
  expect(await direct('GET /healthz HTTP/1.1\nHost: localhost')).toContain('200')
})

test('mails are shown to a browser on this machine, and to no one through a relay', async () => {
  expect((await stack.fetch('/dev/mail')).status).toBe(200)
  const relayed: Record<string, string>[] = [
    { 'x-forwarded-for': '203.0.113.9' },
    // A balancer on the same machine whose visitors look as if they were here.
    { 'x-forwarded-for': '127.0.0.1' },
    { 'x-forwarded-proto': 'https' },
    { 'x-real-ip': '127.0.0.1' },
    { forwarded: 'for=127.0.0.1' },
    { via: '1.1 balancer' },
  ]
  for (const headers of relayed) {
    expect((await stack.fetch('/dev/mail', { headers })).status).toBe(404)
    expect((await stack.fetch('/signin', { headers })).status).toBe(200)
  }
})
