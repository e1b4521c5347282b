/** Records by DNS UPDATE (RFC 2136) to the primary server of the zone, over TCP and signed. */
import { randomInt } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import net from 'node:net'
import { SECOND_MS, systemClock } from '../../shared/running/clock.ts'
import { askDns } from '../../shared/http/dns-question.ts'
import type { ProofRecord, RecordKeeper } from './record-keeper.ts'
import type { Lookups } from './lookups.ts'
import type { DnsServer, Rfc2136Settings } from './settings.ts'
import { readAnswer, signedUpdate, type RecordChange } from './tsig.ts'

const ANSWER_TIMEOUT_MS = 10 * SECOND_MS
/** Two bytes say how long a message is (RFC 1035 §4.2.2). */
const LENGTH_BYTES = 2

export function createRfc2136(
  { server, key, zone: ownZone }: Rfc2136Settings,
  lookups: Pick<Lookups, 'at'>,
): RecordKeeper {
  const place = `${server.host}:${server.port}`

  /** The nearest zone above the name that this server answers for. */
  async function zoneOf(name: string): Promise<string | undefined> {
    if (ownZone !== undefined) return name === ownZone || name.endsWith(`.${ownZone}`) ? ownZone : undefined
    const resolver = lookups.at(await addressOf(server))
    for (let zone = name; ; zone = zone.slice(zone.indexOf('.') + 1)) {
      if (await hasOwnSoa(resolver, zone)) return zone
      if (!zone.includes('.')) return undefined
    }
  }

  async function change(kind: RecordChange['kind'], { name, value }: ProofRecord): Promise<void> {
    const zone = await zoneOf(name)
    if (zone === undefined)
      throw new Error(
        ownZone === undefined
          ? `the name server ${place} has no zone for ${name}: set DNS01_SERVER to the primary server of its zone, or point a CNAME from ${name} into a zone of that server`
          : `${name} is not in the zone ${ownZone}: correct DNS01_ZONE, or point a CNAME from ${name} into that zone`,
      )
    const id = randomInt(65_536)
    const { message, mac } = signedUpdate(id, zone, { kind, name, value }, key, systemClock.now())
    const answer = await ask(server, message).catch((error: unknown) => {
      throw new Error(`the name server ${place} does not answer: ${(error as Error).message}`, { cause: error })
    })
    const refusal = readAnswer(answer, { id, mac, key, nowMs: systemClock.now() })
    if (refusal !== undefined) throw new Error(`the name server ${place} did not take the record ${name}: ${refusal}`)
  }

  return {
    covers: async (name) => (await zoneOf(name).catch(() => undefined)) !== undefined,
    present: (record) => change('add', record),
    // Nobody else ever takes it away, so that a server that was busy for a moment is asked again.
    remove: (record) => change('remove', record).catch(() => change('remove', record)),
  }
}

/** A server that is asked for a name that it does not have answers with an error, or with nothing. */
async function hasOwnSoa(resolver: ReturnType<Lookups['at']>, name: string): Promise<boolean> {
  try {
    await askDns(() => resolver.resolveSoa(name))
    return true
  } catch {
    return false
  }
}

/** In the form that Node's resolver takes: an address with its port. */
async function addressOf({ host, port }: DnsServer): Promise<string> {
  const { address, family } = await lookup(host)
  return family === 6 ? `[${address}]:${port}` : `${address}:${port}`
}

/** One question on a connection of its own. */
function ask({ host, port }: DnsServer, message: Buffer): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const socket = net.connect({ host, port })
  const timer = setTimeout(() => reject(new Error('no answer in time')), ANSWER_TIMEOUT_MS)
  let received = Buffer.alloc(0)
  socket.on('connect', () => {
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt16BE(message.length)
    socket.write(Buffer.concat([length, message]))
  })
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    if (received.length < LENGTH_BYTES) return
    const end = LENGTH_BYTES + received.readUInt16BE(0)
    if (received.length >= end) resolve(received.subarray(LENGTH_BYTES, end))
  })
  socket.on('error', reject)
  socket.on('close', () => reject(new Error('it closed the connection')))
  return promise.finally(() => {
    clearTimeout(timer)
    socket.destroy()
  })
}
