/**
 * Starts what many test files share, once per run and only when someone asks for it: vitest's main process listens
 * on a socket, a test file asks for a thing by name and gets its description as JSON.
 */
import http from 'node:http'
import path from 'node:path'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'

export interface SharedThing<Description> {
  readonly description: Description
  stop(): Promise<void>
}

export type Starters = Readonly<Record<string, () => Promise<SharedThing<unknown>>>>

export interface Broker {
  readonly address: string
  stop(): Promise<void>
}

export async function startBroker(starters: Starters): Promise<Broker> {
  const started = new Map<string, Promise<SharedThing<unknown>>>()
  const folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-broker-'))
  const address = path.join(folder, 'socket')

  const server = http.createServer((request, response) => {
    const name = request.url!.slice(1)
    if (!started.has(name)) started.set(name, starters[name]!())
    started.get(name)!.then(
      ({ description }) => response.end(JSON.stringify(description)),
      (error: unknown) => response.writeHead(500).end(String((error as Error).stack)),
    )
  })
  server.listen(address)
  await once(server, 'listening')

  return {
    address,
    async stop() {
      server.close()
      server.closeAllConnections()
      const things = await Promise.allSettled(started.values())
      // One that does not stop keeps no other from being stopped.
      const running = things.flatMap((thing) => (thing.status === 'fulfilled' ? [thing.value] : []))
      const stops = await Promise.allSettled(running.map((thing) => thing.stop()))
      await rm(folder, { recursive: true, force: true })
      for (const stop of stops) if (stop.status === 'rejected') throw stop.reason
    },
  }
}

/** The description of a shared thing; the first to ask starts it. */
export async function askBroker<Description>(address: string, name: string): Promise<Description> {
  const request = http.get({ socketPath: address, path: `/${name}`, agent: false })
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const text = Buffer.concat(await response.toArray()).toString()
  if (response.statusCode !== 200) throw new Error(`The shared ${name} did not start: ${text}`)
  return JSON.parse(text) as Description
}
