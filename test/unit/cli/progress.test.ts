import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createProgress, drawnLine, loggedLine, type PhaseState } from '../../../cli/terminal/progress.ts'
import { createTerminal } from '../../../cli/terminal/terminal.ts'

const half: PhaseState = {
  label: 'Sending',
  files: 3001,
  bytes: 6_000_000,
  filesDone: 1500,
  bytesDone: 3_000_000,
  elapsedMs: 2000,
}

describe('one line', () => {
  test('with share, bytes, files, rate and remaining time', () => {
    const line = drawnLine(half, 120)
    expect(line).toMatch(/^Sending █{12}░{12} 50 % {2}3 MB of 6 MB, 1500 of 3001 files, 1\.5 MB\/s, 2 s left$/)
    expect(loggedLine(half)).toBe('Sending: 50 %, 3 MB of 6 MB, 1500 of 3001 files, 1.5 MB/s, 2 s left')
  })
  test.each([200, 80, 60, 40, 30, 20, 12, 5, 1])('never wider than a terminal of %d columns', (columns) => {
    expect(drawnLine(half, columns).length).toBeLessThanOrEqual(Math.max(1, columns - 1))
  })
  test('guesses no rate in the first second, and divides by nothing', () => {
    expect(drawnLine({ ...half, elapsedMs: 10 }, 120)).not.toContain('left')
    expect(drawnLine({ ...half, bytes: 0, bytesDone: 0 }, 120)).toContain('100 %')
  })
})

/** What a whole phase writes to stderr, in an environment and on a terminal or not. */
function written(env: Record<string, string>, isTTY: boolean, seconds: number): string {
  let text = ''
  const stderr = Object.assign(
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        text += chunk.toString()
        done()
      },
    }),
    { isTTY, columns: 50 },
  )
  let now = 0
  const streams = { stdin: process.stdin, stdout: stderr, stderr, env }
  const progress = createProgress(createTerminal(streams, false), () => now)
  progress.begin('Sending', 10, 1000)
  for (let second = 0; second < seconds; second++) {
    now += 1000
    progress.advance(10)
  }
  progress.finish()
  return text
}

describe('where it goes', () => {
  test('a terminal is drawn over, and left clean', () => {
    const text = written({ TERM: 'xterm' }, true, 3)
    expect(text).toContain('\r')
    expect(text.endsWith('\r\u001b[K')).toBe(true)
    // oxlint-disable-next-line no-control-regex -- colours are exactly what must not be there
    expect(text).not.toMatch(/\u001b\[[0-9;]*m/)
  })
  test.each([
    ['a pipe', { TERM: 'xterm' }, false],
    ['a dumb terminal', { TERM: 'dumb' }, true],
    ['CI', { TERM: 'xterm', CI: 'true' }, true],
  ])('%s gets whole lines now and then, and nothing of a short one', (_, env, isTTY) => {
    expect(written(env, isTTY, 5)).toBe('')
    const text = written(env, isTTY, 35)
    // oxlint-disable-next-line no-control-regex -- nothing that steers a terminal
    expect(text).not.toMatch(/[\r\u001b]/)
    expect(text.trimEnd().split('\n')).toHaveLength(3)
  })
})
