/**
 * An operator who stays: runs the commands of `npm run admin` in one process beside a stack, since loading them takes
 * half a second of a processor each time. The program itself has `operations/admin.test.ts`.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import http from 'node:http'
import path from 'node:path'
import { json } from 'node:stream/consumers'

const PROGRAM = fileURLToPath(new URL('operator-process.ts', import.meta.url))

/** What is asked of the process: arguments as on the command line, and what stands on stdin. */
export interface OperatorCall {
  readonly args: readonly string[]
  readonly input: string
}

/** How a command ended. */
export interface CommandResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface Operator {
  /** Where it listens; other processes may ask it too. */
  readonly address: string
  stop(): Promise<void>
}

/** Beside the stack that runs with this environment. */
export async function startOperator(dataDir: string, env: Readonly<Record<string, string>>): Promise<Operator> {
  const address = path.join(dataDir, 'operator.sock')
  const child = fork(PROGRAM, [address], { env, execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  const early = exited.then(([code]) => {
    throw new Error(`the operator ended with ${code}`)
  })
  await Promise.race([once(child, 'message'), early])
  early.catch(() => {})
  return {
    address,
    async stop() {
      // It ends when no one holds its channel any more, however that came about.
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

export async function askOperator(address: string, call: OperatorCall): Promise<CommandResult> {
  // A kept connection may be ended by the other side while it stands still.
  const request = http.request({ socketPath: address, method: 'POST', agent: false })
  request.end(JSON.stringify(call))
  const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
  return (await json(answer)) as CommandResult
}
