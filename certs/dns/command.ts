/**
 * Records by a program of the operator's: `<command> present|cleanup <name>. <value>`, as lego's exec provider calls
 * it, so that hooks which exist work here. It succeeds with exit code 0, and only then.
 */
import { execFile } from 'node:child_process'
import { MINUTE_MS } from '../../shared/running/clock.ts'
import type { RecordKeeper } from './record-keeper.ts'
import type { CommandSettings } from './settings.ts'

const TIMEOUT_MS = 2 * MINUTE_MS
const MAX_OUTPUT_BYTES = 1_000_000
const MAX_QUOTED_CHARS = 300

export function createCommandHook({
  command,
  environment,
}: Pick<CommandSettings, 'command' | 'environment'>): RecordKeeper {
  /** No shell: the name and the value stay two words, whatever is in them. */
  function run(action: 'present' | 'cleanup', name: string, value: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const options = {
      env: environment,
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
      maxBuffer: MAX_OUTPUT_BYTES,
    } as const
    execFile(command, [action, `${name}.`, value], options, (error, _, complaint) => {
      if (error) reject(new Error(`DNS01_COMMAND ${action} ${name}. failed (${outcomeOf(error)})${quoted(complaint)}`))
      else resolve()
    })
    return promise
  }
  return {
    covers: async () => true,
    present: ({ name, value }) => run('present', name, value),
    remove: ({ name, value }) => run('cleanup', name, value),
  }
}

function outcomeOf(error: Error & { code?: unknown; killed?: boolean }): string {
  if (error.killed === true) return `killed after ${TIMEOUT_MS / MINUTE_MS} minutes`
  return typeof error.code === 'number' ? `exit code ${error.code}` : error.message
}

/** The last line is where programs say what went wrong. */
function quoted(complaint: string): string {
  const last = complaint.trim().split('\n').at(-1) ?? ''
  return last === '' ? '' : `: ${last.slice(0, MAX_QUOTED_CHARS)}`
}
