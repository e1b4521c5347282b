import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'

const CONTROL = new URL('../../control/', import.meta.url).href
const EDGE = new URL('../../edge/', import.meta.url).href
const SHARED = new URL('../../shared/', import.meta.url).href

/** Routes that answer, and let something go wrong behind the answer. */
const CONTROL_PROGRAM = `
import { createHttpServer } from '${CONTROL}ground/http/server/server.ts'
import { json } from '${CONTROL}ground/http/reply.ts'
import { surviveStrayErrors } from '${CONTROL}ground/stray-errors.ts'
import { systemClock } from '${SHARED}running/clock.ts'
import { createLog } from '${SHARED}running/log.ts'
const log = createLog('test', 'info')
surviveStrayErrors(log)
const route = (path, stray) => ({ method: 'GET', path, handle: () => { stray(); return json(200, {}) } })
const server = createHttpServer({ log, clock: systemClock, trustedProxies: [], routes: [
  route('/fine', () => {}),
  route('/rejects/:id', () => void Promise.reject(new Error('rejected behind the answer'))),
  route('/throws', () => setTimeout(() => { throw new Error('thrown behind the answer') }, 1)),
  route('/emits', async () => { await null; setImmediate(() => { throw 'not even an error' }) }),
] })
process.send(await server.listen(0, '127.0.0.1'))
process.on('disconnect', () => process.exit(0))
`

/** The same as visits of the edge, which knows one only as part of the work that it began. */
const EDGE_PROGRAM = `
import http from 'node:http'
import { asPartOf, surviveStrayErrors } from '${EDGE}processes/status/stray-errors.ts'
import { createLog } from '${SHARED}running/log.ts'
surviveStrayErrors(createLog('test', 'info'))
const strays = {
  '/rejects/st_1': () => void Promise.reject(new Error('rejected behind the answer')),
  '/throws': () => setTimeout(() => { throw new Error('thrown behind the answer') }, 1),
  '/emits': async () => { await null; setImmediate(() => { throw 'not even an error' }) },
}
const server = http.createServer((request, response) => {
  const visit = { method: request.method, host: 'dropway.test', target: request.url, ip: '192.0.2.1', header: () => undefined }
  asPartOf(visit, () => { strays[request.url.split('?')[0]]?.(); response.end('{}') })
})
server.listen(0, '127.0.0.1', () => process.send(server.address().port))
process.on('disconnect', () => process.exit(0))
`

test.each([
  ['control', CONTROL_PROGRAM, {}],
  ['the edge', EDGE_PROGRAM, { host: 'dropway.test' }],
])('what escapes one request of %s is logged with it and ends no one else', async (_, program, about) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-stray-'))
  const file = path.join(folder, 'server.mjs')
  await writeFile(file, program)
  const child = fork(file, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  let said = ''
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => (said += chunk))
  const saidAll = once(child.stdout!, 'end')
  const linesSaid = (): string[] => said.split('\n').slice(0, -1)
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the server ended with ${code}`)))
  const [port] = (await Promise.race([once(child, 'message'), ended])) as [number]
  ended.catch(() => {})
  for (const path of ['/rejects/st_1?token=secret', '/throws', '/emits', '/fine'])
    expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(200)
  // What goes wrong behind an answer has its time.
  await expect.poll(linesSaid).toHaveLength(3)
  expect((await fetch(`http://127.0.0.1:${port}/fine`)).status).toBe(200)
  child.disconnect()
  await saidAll
  const lines = linesSaid().map((line) => JSON.parse(line) as Record<string, unknown>)
  const logged = lines.map(({ msg, request }) => ({ msg, request: request as { path: string } }))
  expect(logged.toSorted((one, other) => one.request.path.localeCompare(other.request.path))).toEqual([
    { msg: 'an uncaught exception', request: { method: 'GET', ...about, path: '/emits' } },
    { msg: 'an unhandled rejection', request: { method: 'GET', ...about, path: '/rejects/st_1' } },
    { msg: 'an uncaught exception', request: { method: 'GET', ...about, path: '/throws' } },
  ])
  expect(said).not.toContain('secret')
  await rm(folder, { recursive: true })
})
