/** A plane whose event loop stands still is noticed, says where it hangs, and is replaced; visitors of drops notice nothing. */
import { setTimeout as sleep } from 'node:timers/promises'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startStack, type OwnStack, type Published } from '../support/stack.ts'
import { startTraffic } from '../support/traffic.ts'

/** What is promised. */
const REPLACED_WITHIN_MS = 20_000

let stack: OwnStack
let site: Published

beforeAll(async () => {
  stack = await startStack({ env: { TEST_HOOKS: 'hang' } })
  site = await stack.publish(await stack.createAccount('plus'), '<h1>Still here</h1>')
})

afterAll(async () => {
  await stack?.stop()
})

const HANGS = [
  { how: 'an endless loop', signal: 'SIGUSR2', says: /hung for 10 s in hangForEver \(file:.+test-hook\.ts:\d+:\d+\)/ },
  { how: 'SIGSTOP', signal: 'SIGSTOP', says: /The control plane \(process \d+\) does not answer/ },
] as const

test.each(HANGS)(
  'control that stands still ($how) is replaced and says why',
  { timeout: 60_000 },
  async ({ signal, says }) => {
    const before = stack.pids()['control']!
    const visitors = startTraffic({
      port: stack.httpsPort,
      ca: stack.ca,
      sitesDomain: stack.sitesDomain,
      targets: [{ slug: site.slug, expect: ({ status, body }) => status === 200 && body.includes('Still here') }],
      perSecond: 20,
    })
    stack.kill('control', signal)
    const hungAt = Date.now()
    while ((stack.pids()['control'] ?? before) === before && Date.now() - hungAt < REPLACED_WITHIN_MS) await sleep(100)
    expect(stack.pids()['control']).not.toBe(before)
    expect((await stack.fetch('/signin')).status).toBe(200)
    expect((await visitors.stop()).failures).toEqual([])
    expect(await readFile(path.join(stack.dataDir, 'logs', 'control.log'), 'utf8')).toMatch(says)
  },
)
