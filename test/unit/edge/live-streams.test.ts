/** The streams of a worker: told once for each version, resumed, ended with the right to see the drop. */
import type { Readable } from 'node:stream'
import { expect, test, vi } from 'vitest'
import type { Exchange } from '../../../edge/context.ts'
import { createLiveStreams } from '../../../edge/store/live/live-streams.ts'

function tab(lastEventId?: string, ip = '192.0.2.1') {
  let source: Readable | undefined
  let text = ''
  let isOver = false
  const exchange = {
    ip,
    header: (name: string) => (name === 'last-event-id' ? lastEventId : undefined),
    stream(_status: number, _headers: readonly string[], stream: Readable) {
      source = stream
      stream.on('data', (piece: Buffer) => (text += String(piece)))
      stream.on('end', () => (isOver = true))
    },
  } as unknown as Exchange
  return { exchange, leave: () => source?.destroy(), text: () => text, isOver: () => isOver }
}
const moment = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

test('a tab hears the version, each newer one once, and nothing of other hosts', async () => {
  const streams = createLiveStreams(() => 0.5)
  let version: number | undefined = 3
  const one = tab()
  expect(streams.open(one.exchange, { host: 'a', isReview: true, version: () => version })).toBe('open')
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
  for (const { exchange } of tabs) streams.open(exchange, { host: 'a', isReview: true, version: () => 7 })
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

test('a silent stream has a heartbeat, so that whoever is between does not take it for dead', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const streams = createLiveStreams(() => 0)
    const one = tab('7')
    streams.open(one.exchange, { host: 'a', isReview: true, version: () => 7 })
    vi.advanceTimersByTime(45_000)
    await moment()
    expect(one.text()).toBe(`retry: 1000\n: resumed\n\n${': \n\n'.repeat(3)}`)
    streams.end()
    await moment()
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

test('who may not see the drop gets no stream', () => {
  const streams = createLiveStreams()
  expect(streams.open(tab().exchange, { host: 'a', isReview: true, version: () => undefined })).toBe('unseen')
})

test('those who review hear that something was said, and a tab of a preview does not', async () => {
  const streams = createLiveStreams(() => 0)
  const [reviewer, reader] = [tab('7'), tab('7')]
  streams.open(reviewer.exchange, { host: 'a', isReview: true, version: () => 7 })
  streams.open(reader.exchange, { host: 'a', isReview: false, version: () => 7 })
  streams.said(['a', 'b'])
  await moment()
  expect(reviewer.text()).toBe('retry: 1000\n: resumed\n\nevent: threads\ndata: {}\n\n')
  expect(reader.text()).toBe('retry: 1000\n: resumed\n\n')
})

test('a network has its share, and gets it back when its tabs are closed', async () => {
  const streams = createLiveStreams()
  const watched = { host: 'a', isReview: true, version: () => 7 }
  const tabs = Array.from({ length: 2000 }, () => tab())
  for (const { exchange } of tabs) expect(streams.open(exchange, watched)).toBe('open')
  expect(streams.open(tab().exchange, watched)).toBe('full')
  expect(streams.open(tab(undefined, '198.51.100.1').exchange, watched)).toBe('open')
  tabs[0]!.leave()
  await moment()
  expect(streams.open(tab().exchange, watched)).toBe('open')
  streams.end()
  await moment()
  expect(streams.size()).toBe(0)
})
