/** The streams of a worker: told once for each version, resumed, ended with the right to see the drop. */
import type { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import type { FullExchange } from '../../../edge/context.ts'
import { createLiveStreams } from '../../../edge/store/live/live-streams.ts'

function tab(lastEventId?: string) {
  let source: Readable | undefined
  let text = ''
  let isOver = false
  const exchange = {
    header: (name: string) => (name === 'last-event-id' ? lastEventId : undefined),
    relay(_status: number, _headers: readonly string[], stream: Readable) {
      source = stream
      stream.on('data', (piece: Buffer) => (text += String(piece)))
      stream.on('end', () => (isOver = true))
    },
  } as unknown as FullExchange
  return { exchange, leave: () => source?.destroy(), text: () => text, isOver: () => isOver }
}
const moment = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

test('a tab hears the version, each newer one once, and nothing of other hosts', async () => {
  const streams = createLiveStreams(() => 0.5)
  let version: number | undefined = 3
  const one = tab()
  expect(streams.open(one.exchange, { host: 'a', version: () => version })).toBe(true)
  streams.changed(['b'])
  streams.changed(['a'])
  version = 4
  streams.changed(['a'])
  streams.changed(undefined)
  await moment()
  expect(one.text()).toBe('retry: 3500\nid: 3\ndata: {"version":3}\n\nid: 4\ndata: {"version":4}\n\n')
  version = undefined
  streams.changed(['a'])
  await moment()
  expect([one.isOver(), streams.size()]).toEqual([true, 0])
})

test('a tab that knows the version is not told again; each comes back at a time of its own', async () => {
  let count = 0
  const streams = createLiveStreams(() => (count++ % 10) / 10)
  const tabs = Array.from({ length: 5 }, () => tab('7'))
  for (const { exchange } of tabs) streams.open(exchange, { host: 'a', version: () => 7 })
  await moment()
  expect(tabs.map((each) => each.text())).toEqual(
    [1000, 1500, 2000, 2500, 3000].map((retry) => `retry: ${retry}\n: resumed\n\n`),
  )
  tabs[0]!.leave()
  await moment()
  expect(streams.size()).toBe(4)
  streams.end()
  await moment()
  expect(streams.size()).toBe(0)
})

test('who may not see the drop gets no stream', () => {
  const streams = createLiveStreams()
  expect(streams.open(tab().exchange, { host: 'a', version: () => undefined })).toBe(false)
})
