import { expect, test } from 'vitest'
import { createReport } from '../../../control/operations/supervisor/report.ts'
import { keepRunning, type Running } from '../../../control/operations/supervisor/processes/unit.ts'

/** Stand-ins for processes: the n-th start gives pid n; `crash` ends the one that runs. */
function fakeProgram(options: { failing?: (start: number) => boolean } = {}) {
  let starts = 0
  let end = () => {}
  return {
    get starts() {
      return starts
    },
    crash: () => end(),
    async start(): Promise<Running> {
      const pid = ++starts
      if (options.failing?.(pid)) throw new Error(`start ${pid} failed`)
      const { promise, resolve } = Promise.withResolvers<void>()
      end = resolve
      return { pid, exited: promise, stop: async () => resolve() }
    },
  }
}

const report = createReport({ write: () => {} })

/** Notes how long was waited, and does not wait. */
function notedPauses() {
  const waited: number[] = []
  return { waited, pause: async (ms: number) => void waited.push(ms) }
}

test('the first start must work: its failure is that of the whole start', async () => {
  const { start } = fakeProgram({ failing: () => true })
  await expect(keepRunning({ name: 'x', start, report, onChange() {} })).rejects.toThrow('start 1 failed')
})

test('a crash is followed by a restart at once, and nothing restarts after stop', async () => {
  const program = fakeProgram()
  const { waited, pause } = notedPauses()
  const unit = await keepRunning({ name: 'x', start: program.start, report, pause, onChange() {} })
  expect(unit.pid).toBe(1)
  program.crash()
  await expect.poll(() => unit.pid).toBe(2)
  expect(waited).toEqual([0])
  await unit.stop()
  expect(program.starts).toBe(2)
})

test('a crash on a disk that is full is followed by a restart, and reported', async () => {
  const program = fakeProgram()
  const said: string[] = []
  const unit = await keepRunning({
    name: 'x',
    start: program.start,
    report: createReport({ write: (text) => said.push(text) }),
    pause: notedPauses().pause,
    onChange() {
      throw new Error('ENOSPC: no space left on device, write')
    },
  })
  program.crash()
  await expect.poll(() => unit.pid).toBe(2)
  await unit.stop()
  expect(said.join('')).toContain('no space left on device')
})

test('starts that fail are tried again with growing pauses, up to a limit', async () => {
  const program = fakeProgram({ failing: (start) => start > 1 && start < 8 })
  const { waited, pause } = notedPauses()
  const unit = await keepRunning({ name: 'x', start: program.start, report, pause, onChange() {} })
  program.crash()
  await expect.poll(() => unit.pid).toBe(8)
  expect(waited).toEqual([0, 200, 1000, 5000, 15_000, 15_000, 15_000])
  await unit.stop()
})

test('a stop during the pause before a restart ends it', async () => {
  const program = fakeProgram()
  const stopping = Promise.withResolvers<void>()
  const pause = (_ms: number, signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve())
      stopping.resolve()
    })
  const unit = await keepRunning({ name: 'x', start: program.start, report, pause, onChange() {} })
  program.crash()
  await stopping.promise
  await unit.stop()
  expect({ starts: program.starts, pid: unit.pid }).toEqual({ starts: 1, pid: undefined })
})
