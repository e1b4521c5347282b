import { spawn, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { askForPongs } from '../../../shared/running/watchdog/heartbeat.ts'

const WATCHDOG = new URL('../../../shared/running/watchdog/', import.meta.url).href
const HANG_MS = 1500

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-watchdog-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A program that is watched, says what it does, and does it. */
async function program(name: string, deed: string): Promise<string> {
  const file = path.join(folder, `${name}.mjs`)
  await writeFile(
    file,
    `import { startWatchdog } from '${WATCHDOG}watchdog.ts'
import { answerPings } from '${WATCHDOG}heartbeat.ts'
answerPings()
const watchdog = startWatchdog({ name: 'test', hangMs: ${HANG_MS} })
watchdog.note('GET /earlier and longer'); watchdog.note('POST /slow')
${deed}`,
  )
  return file
}

const HANGS = [
  {
    name: 'loop',
    deed: 'setTimeout(function spinning() { for (;;); }, 300)',
    where: /in spinning \(file:.+loop\.mjs:\d+:\d+\)/,
  },
  {
    name: 'regex',
    deed: "setTimeout(function matching() { /^(a+)+$/.test('a'.repeat(40) + 'b') }, 300)",
    where: /in matching \(file:.+regex\.mjs:\d+:\d+\)/,
  },
  {
    name: 'promises',
    deed: 'async function turning() { for (;;) await null }\nsetTimeout(turning, 300)',
    where: /in turning/,
  },
  // One native call cannot be looked into; what the process was at is all there is.
  {
    name: 'native',
    deed: "setTimeout(() => ('a' + '\\u0301'.repeat(120_000) + '\\u0323'.repeat(120_000)).normalize('NFC'), 300)",
    where: /hung for 1.5 s;/,
  },
]

test.each(HANGS)('a process that hangs ($name) says where and ends', async ({ name, deed, where }) => {
  const child = spawn(process.execPath, [await program(name, deed)], { stdio: ['ignore', 'ignore', 'pipe'] })
  const [said, [, signal]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  expect(signal).toBe('SIGKILL')
  const entry = JSON.parse(said.split('\n').find((line) => line.startsWith('{"level":60'))!) as Record<string, unknown>
  expect(entry).toMatchObject({ level: 60, name: 'test', pid: child.pid, doing: 'POST /slow' })
  expect(entry['msg']).toMatch(where)
})

test('a process that works in short turns, and one that was stopped for a while, live on', async () => {
  const busy = `let turns = 0
const work = () => {
  const turnEnd = Date.now() + 400
  while (Date.now() < turnEnd);
  console.log('one turn')
  if (++turns < 12) setImmediate(work)
  else watchdog.stop().then(() => process.exit(0))
}
work()`
  const child = spawn(process.execPath, [await program('busy', busy)], { stdio: ['ignore', 'pipe', 'ignore'] })
  const exited = once(child, 'exit')
  // It works, and is watched.
  await once(child.stdout, 'data')
  child.kill('SIGSTOP')
  await sleep(2 * HANG_MS)
  child.kill('SIGCONT')
  expect(await exited).toEqual([0, null])
})

test('a parent notices a child that was stopped, and only that one', async () => {
  const idle = await program('idle', 'setInterval(() => {}, 1000)')
  // On a busy machine a child stands still for seconds too: the one that is well has a minute.
  const children = [
    { name: 'well', process: fork(idle), maxUnanswered: 600 },
    { name: 'stopped', process: fork(idle), maxUnanswered: 60 },
  ]
  onTestFinished(() => {
    for (const { process: child } of children) child.kill('SIGKILL')
  })
  const silent: string[] = []
  const stops = children.map(({ name, process: child, maxUnanswered }) =>
    askForPongs(child, () => silent.push(name), { pingMs: 100, maxUnanswered }),
  )
  await Promise.all(children.map(({ process: child }) => new Promise((resolve) => child.once('message', resolve))))
  children[1]!.process.kill('SIGSTOP')
  await expect.poll(() => silent).toEqual(['stopped'])
  for (const stop of stops) stop()
})
