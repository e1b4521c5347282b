/** What an edge believes of a token at a preview for members: control's own word, and nothing else. */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { Drop } from '../../../edge/context.ts'
import { createPreviewGate } from '../../../edge/gate/members.ts'
import { createMemberQuestion } from '../../../edge/send/member-question.ts'
import { createSecrets } from '../../../shared/secrets/secrets.ts'
import { routeOf } from '../../support/manifests.ts'

const DROP = { route: routeOf(), versionNumber: 3, isProtected: false, isPreview: true, isForMembers: true } as Drop
const IP = '192.0.2.7'
/** Questions of one worker at a time. */
const MAX_ASKED = 20

const opened: http.Server[] = []
afterEach(() => {
  for (const server of opened.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function controlThat(answer: http.RequestListener): Promise<string> {
  const server = http.createServer(answer)
  opened.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const controlSaying = (status: number): Promise<string> =>
  controlThat((_, response) => void response.writeHead(status).end())

test.each([
  [200, true],
  [401, false],
  [403, false],
  [404, false],
  [408, undefined],
  [421, undefined],
  [429, undefined],
  [500, undefined],
  [503, undefined],
])('a control that answers %i: %s', async (status, said) => {
  const ask = createMemberQuestion([await controlSaying(status)], 'dropway.test')
  expect(await ask('st_demo', 'token', IP)).toBe(said)
})

test('the next control is asked where one says nothing', async () => {
  const away = await controlThat((request) => void request.socket.destroy())
  const ask = createMemberQuestion([away, await controlSaying(503), await controlSaying(200)], 'dropway.test')
  expect(await ask('st_demo', 'token', IP)).toBe(true)
})

test('a question that finds too many under way is not answered with no', async () => {
  const held: http.ServerResponse[] = []
  const control = await controlThat((_, response) => void held.push(response))
  const ask = createMemberQuestion([control], 'dropway.test')
  const asking = Array.from({ length: MAX_ASKED }, (_, index) => ask('st_demo', `token-${index}`, IP))
  expect(await ask('st_demo', 'one more', IP)).toBeUndefined()
  await expect.poll(() => held.length).toBe(MAX_ASKED)
  for (const response of held) response.end()
  expect(new Set(await Promise.all(asking))).toEqual(new Set([true]))
})

test.each([true, false])('what control says (%s) is believed, and its silence is not', async (said) => {
  const answers = [undefined, said, !said]
  const gate = createPreviewGate({
    secrets: createSecrets('k'.repeat(32)),
    clock: { now: () => 0 },
    baseUrl: 'https://dropway.test',
    ask: async () => answers.shift(),
  })
  const isMembers = () => gate.isMembers(DROP, 'token', IP)
  expect([await isMembers(), await isMembers(), await isMembers()]).toEqual([undefined, said, said])
})
