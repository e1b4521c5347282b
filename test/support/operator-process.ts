/** The process of `operator.ts`: one command at a time, over services that stay open. */
import http from 'node:http'
import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { createServices } from '../../control/composition/services.ts'
import { readControlConfig } from '../../control/ground/config.ts'
import { takeClock } from '../../control/operations/admin/command.ts'
import { commands } from '../../control/operations/admin/commands.ts'
import { systemClock, type Clock } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import type { CommandResult, OperatorCall } from './operator.ts'

const [address] = process.argv.slice(2)
/** The clock of the command that runs; `--now` moves it. */
let clock: Clock = systemClock
const services = createServices({
  config: readControlConfig(process.env),
  clock: { now: () => clock.now() },
  log: silentLog,
})

async function run({ args: [name = '', ...rest], input }: OperatorCall): Promise<CommandResult> {
  // Commands read a password from there.
  Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(input)]), configurable: true })
  try {
    const { clock: asked, rest: ownArguments } = takeClock(rest)
    clock = asked
    const result = await commands.get(name)!.run(services, ownArguments)
    return { code: 0, stdout: `${JSON.stringify(result)}\n`, stderr: '' }
  } catch (error) {
    return { code: 1, stdout: '', stderr: `${(error as Error).message}\n` }
  } finally {
    clock = systemClock
  }
}

let last: Promise<unknown> = Promise.resolve()

const server = http.createServer((request, response) => {
  const answer = async () => response.end(JSON.stringify(await run((await json(request)) as OperatorCall)))
  // Whoever goes away before their command is read keeps no one else waiting.
  last = last.then(answer).catch(() => response.destroy())
})
server.listen(address, () => process.send!('ready'))

process.on('disconnect', async () => {
  server.close()
  server.closeAllConnections()
  await services.close()
})
