/** `deploy --watch`: what sets off another publish. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { watchFolder } from '../../../cli/commands/deploy/watch.ts'
import type { Context } from '../../../cli/terminal/command.ts'

let folder: string
let said: string[]
let stop: AbortController

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-watch-'))
  said = []
  stop = new AbortController()
  return () => rmSync(folder, { recursive: true })
})

const save = (name: string): void => writeFileSync(path.join(folder, name), 'text')

function follow(publish: () => Promise<void>): Promise<void> {
  const terminal = { note: (text: string) => void said.push(text) } as Context['terminal']
  return watchFolder({ terminal }, folder, publish, stop.signal)
}

test('what is saved during the first publish is published after it', async () => {
  let publishes = 0
  await follow(async () => {
    if (++publishes === 1) save('page.html')
    else stop.abort()
  })
  expect(publishes).toBe(2)
  expect(said).toEqual([`Watching ${path.basename(folder)}. Stop with Ctrl-C.`])
})

test('a publish that fails is told, and the next change tries again', async () => {
  let publishes = 0
  await follow(async () => {
    publishes++
    if (publishes === 3) return stop.abort()
    setImmediate(() => save(`page-${publishes}.html`))
    if (publishes === 2) throw new Error('the line was lost')
  })
  expect(said.at(-1)).toBe('the line was lost')
})

test('where the first publish fails nothing is watched', async () => {
  let publishes = 0
  const failing = follow(async () => {
    publishes++
    save('page.html')
    throw new Error('there is no such drop')
  })
  await expect(failing).rejects.toThrow('there is no such drop')
  expect([publishes, said]).toEqual([1, []])
})

test('a stop during the first publish waits for its end', async () => {
  let isOver = false
  await follow(async () => {
    stop.abort()
    await new Promise(setImmediate)
    isOver = true
  })
  expect(isOver).toBe(true)
})
