/** What is known when the certificate authority cannot be asked. */
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import type { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { createAcmeSource } from '../../../certs/orders/issue.ts'
import type { IssueError } from '../../../certs/source.ts'
import { systemClock } from '../../../shared/running/clock.ts'
import { createSecrets } from '../../../shared/secrets/secrets.ts'

/** None of these orders comes as far as Redis. */
const NO_REDIS = {} as Redis

async function failureAt(server: net.Server): Promise<IssueError> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const directoryUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/directory`
  const source = createAcmeSource({
    redis: NO_REDIS,
    secrets: createSecrets('k'.repeat(32)),
    clock: systemClock,
    acme: { directoryUrl, email: undefined, caFile: undefined },
  })
  return source.obtain('shop.example').then(
    () => expect.unreachable(),
    (error: IssueError) => error,
  )
}

test('a connection that breaks is told as what it is, and nothing is quoted of a CA that said nothing', async () => {
  const failure = await failureAt(net.createServer((socket) => socket.destroy()))
  expect(failure.message).toMatch(/^the certificate authority does not answer: .*(hang up|reset)/i)
  expect(failure).toMatchObject({ reason: 'ca_unavailable', hasAnswered: false })
})

test.each([429, 500, 503])('status %i is an outage too, with the words of the CA', async (status) => {
  const failure = await failureAt(
    http.createServer((_, response) =>
      response
        .writeHead(status, { 'content-type': 'application/problem+json', 'retry-after': '60', connection: 'close' })
        .end('{"type":"urn:ietf:params:acme:error:serverInternal","detail":"back soon"}'),
    ),
  )
  const problem = 'serverInternal'
  expect(failure).toMatchObject({ reason: 'ca_unavailable', message: 'back soon', problem, hasAnswered: true })
  expect(failure.retryAfterMs).toBeGreaterThan(0)
})
