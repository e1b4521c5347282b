/** A plane whose event loop stands still is noticed, says where it hangs, and is replaced; visitors of drops notice nothing. */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Answer } from '../support/client.ts'
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
  { how: 'an endless loop', signal: 'SIGUSR2', says: /hung for 10 s in hangForEver \(file:.+\.(?:ts|js):\d+:\d+\)/ },
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

const STEPS = ['listed', 'half sent', 'all sent', 'finishing'] as const

test.each(STEPS)(
  'what has arrived is not sent again: control stands still once an upload is %s',
  { timeout: 300_000 },
  async (step) => {
    const { token } = await stack.createAccount('plus')
    const { id } = (await stack.fetch('/api/v1/sites', { token, json: {} })).json()
    const root = `/api/v1/sites/${id}/uploads`
    const contents = new Map(
      Array.from({ length: 40 }, (_, index) => `<p>${step} ${index} ${id}`).map((text) => [sha256(text), text]),
    )
    const files = [...contents].map(([hash, text], index) => ({
      path: index === 0 ? 'index.html' : `${index}.html`,
      sha256: hash,
      size: text.length,
    }))
    const hashes = [...contents.keys()]
    const sent: string[] = []
    const patiently = async (call: () => Promise<Answer>): Promise<Answer> => {
      for (;;) {
        const answer = await call().catch(() => undefined)
        if (answer !== undefined && answer.status < 500) return answer
        await sleep(500)
      }
    }
    const standStill = (at: (typeof STEPS)[number]): void => {
      if (at === step) stack.kill('control', 'SIGSTOP')
    }
    const begin = (): Promise<Answer> => patiently(() => stack.fetch(root, { token, json: { files } }))
    const send = (wanted: readonly string[]): Promise<Answer> =>
      patiently(() => {
        const body = new FormData()
        for (const hash of wanted) body.append(hash, new File([contents.get(hash) ?? ''], 'x'))
        return stack.fetch(`${root}/${uploadId}/blobs`, { token, body })
      })
    let uploadId = ''
    const resume = async (): Promise<string[]> => {
      // A client that remembers nothing starts anew.
      const { upload_id, missing } = (await begin()).json()
      uploadId = upload_id
      return missing
    }
    expect(await resume()).toHaveLength(40)
    standStill('listed')
    sent.push(...(await send(hashes.slice(0, 20))).json().stored)
    standStill('half sent')
    const rest = await resume()
    sent.push(...(await send(rest)).json().stored)
    standStill('all sent')
    expect(await resume()).toEqual([])
    const finish = (): Promise<Answer> => stack.fetch(`${root}/${uploadId}/finish`, { token, method: 'POST' })
    if (step === 'finishing') {
      const first = finish().catch(() => undefined)
      standStill('finishing')
      await first
    }
    const done = await patiently(finish)
    const live = (await begin()).json()
    expect([[201, 404].includes(done.status), live.unchanged]).toEqual([true, true])
    expect(sent.toSorted()).toEqual(hashes.toSorted())
  },
)

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
