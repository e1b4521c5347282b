/**
 * A plane as a child process. It sends `{ ready: true }` once it listens, before that `{ migrating: true }` and
 * `{ migrating: false }` around what may take as long as it needs, drains and exits on SIGTERM, and exits by itself when the channel to its supervisor closes. Once it is ready it is asked every second whether its
 * event loop turns; one that does not answer any more is killed, and its keeper starts it again.
 */
import { fork } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Env } from '../../../../shared/settings/env.ts'
import { ADDRESSES_FOLLOW, tellAddresses } from '../../../../shared/settings/addresses.ts'
import { heapFlags } from '../../../../shared/running/memory.ts'
import { askForPongs } from '../../../../shared/running/watchdog/heartbeat.ts'
import { StartRefused } from '../preflight.ts'
import { endWithUs } from './guard.ts'
import { endFamily, endProcess, pidOf, unlessCancelled, type PipedChild } from './processes.ts'
import { createStartClock } from './start-clock.ts'
import type { Running } from './unit.ts'

export interface PlaneOptions {
  readonly name: string
  readonly dataDir: string
  readonly main: URL
  readonly environment: Env
  /** Settings that are known only when what they name has started; until then the plane loads its modules. */
  readonly addresses: Promise<Env>
  /** How long it may drain after SIGTERM. */
  readonly graceMs: number
  readonly onLog: (line: string) => void
  /** A sentence for the operator's eyes, which no log keeps. */
  readonly onWord: (text: string) => void
  /** Aborted: it is not started after all. */
  readonly cancel: AbortSignal
}

/** Without migrations. */
const START_TIMEOUT_MS = 60_000

export async function startPlane({
  name,
  dataDir,
  main,
  environment,
  addresses,
  graceMs,
  onLog,
  onWord,
  cancel,
}: PlaneOptions): Promise<Running> {
  const child = fork(main, {
    env: { ...environment, ...ADDRESSES_FOLLOW },
    // What is experimental in Node is our decision, not the operator's news.
    execArgv: ['--disable-warning=ExperimentalWarning', ...heapFlags()],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // A process group of its own: Ctrl-C reaches the supervisor only, and a killed plane's workers can be found.
    detached: true,
  }) as PipedChild
  const pid = pidOf(child)
  endWithUs(child, { dataDir, name, signal: 'SIGTERM' })
  const complaints: string[] = []
  createInterface({ input: child.stdout }).on('line', onLog)
  createInterface({ input: child.stderr }).on('line', (line) => {
    complaints.push(line)
    if (complaints.length > 50) complaints.shift()
    onLog(line)
  })

  const exited = new Promise<void>((resolve) => {
    // 'close' comes when its last words have been read; a worker that escaped must not delay that for ever.
    child.once('close', () => resolve())
    child.once('exit', () => {
      endGroup(pid)
      setTimeout(resolve, 1000).unref()
    })
  })
  const clock = createStartClock(START_TIMEOUT_MS)
  const ready = new Promise<'ready'>((resolve) => {
    child.on('message', (message) => {
      const { ready: isReady, word, migrating } = message as { ready?: boolean; word?: unknown; migrating?: boolean }
      if (typeof word === 'string') onWord(word)
      if (migrating === true) clock.stop()
      if (migrating === false) clock.begin()
      if (isReady) resolve('ready')
    })
  })
  const begun = addresses.then((known) => {
    clock.begin()
    tellAddresses(child, known)
  })
  const started = Promise.race([ready, exited.then(() => 'exited' as const), begun.then(() => clock.ranOut)])
  const outcome = await unlessCancelled(cancel, started).catch((error: unknown) => {
    clock.stop()
    endFamily(pid)
    throw error
  })
  clock.stop()
  if (outcome !== 'ready') {
    endFamily(pid)
    await exited
    const reason =
      outcome === 'late' ? `it did not get ready within ${START_TIMEOUT_MS / 1000} s` : complaints.join('\n')
    throw new StartRefused(`The ${name} plane did not start: ${reason || 'it ended without a word'}`)
  }

  // It cannot end itself: it is stopped, or its watchdog is. What it was doing is in its own last line, if it has one.
  const stopAsking = askForPongs(child, () => {
    onLog(`The ${name} plane (process ${pid}) does not answer; it is ended and started again.`)
    endGroup(pid)
  })
  void exited.then(stopAsking)

  return {
    pid,
    exited,
    async stop(pace) {
      if (pace === 'hurried') endFamily(pid)
      await endProcess(pid, [
        { signal: 'SIGTERM', graceMs },
        { signal: 'SIGKILL', graceMs: 2000 },
      ])
    },
  }
}

/** Workers of a killed plane would keep its port: none may outlive it. */
function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group is empty.
  }
}
