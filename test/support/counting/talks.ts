/** What is said on one connection to Postgres or Redis, as far as it takes to tell when one side waits for the other. */

export interface Talk {
  readonly turns: number
  /** The name that the client gave itself, empty without one. */
  readonly name: string
  said(chunk: Buffer): void
  answered(chunk: Buffer): void
}

/** Cuts a stream of bytes into messages: `lengthOf` tells how long the next one is, undefined while that is not known. */
function cutter(
  lengthOf: (bytes: Buffer) => number | undefined,
  take: (message: Buffer) => void,
): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      const length = lengthOf(rest)
      if (length === undefined || rest.length < length) return
      take(rest.subarray(0, length))
      rest = rest.subarray(length)
    }
  }
}

/** A letter, then four bytes that say how long the rest is, themselves among it. */
const lengthInPostgres = (bytes: Buffer): number | undefined =>
  bytes.length < 5 ? undefined : 1 + bytes.readUInt32BE(1)

/**
 * Every Query and every Sync is answered with one ReadyForQuery. A statement that is described first is asked for with
 * Flush, and answered with the description of its parameters.
 */
export function postgresTalk(onTurn: (said: string) => void): Talk {
  const statements = new Map<string, string>()
  let isGreeted = false
  let owed = 0
  let described = 0
  let turns = 0
  let opening: string[] | undefined

  function speak(what: string): void {
    if (owed === 0 && opening === undefined) {
      turns++
      opening = []
    }
    opening?.push(what)
  }

  function close(): void {
    if (opening !== undefined && owed === 0) {
      onTurn(opening.join(' | '))
      opening = undefined
    }
  }

  const saidMessage = cutter(
    (bytes) => (isGreeted ? lengthInPostgres(bytes) : bytes.length < 4 ? undefined : bytes.readUInt32BE(0)),
    (message) => {
      if (!isGreeted) {
        isGreeted = true
        owed++
        return
      }
      const kind = String.fromCharCode(message[0]!)
      if (kind === 'P') statements.set(textAt(message, 5), textAt(message, 5 + textAt(message, 5).length + 1))
      if (kind === 'Q') speak(textAt(message, 5))
      if (kind === 'B') speak(statements.get(textAt(message, 5 + textAt(message, 5).length + 1)) ?? '?')
      if (kind === 'P' || kind === 'D') speak('')
      if (kind === 'Q' || kind === 'S') owed++
      if (kind === 'H') {
        owed++
        described++
      }
    },
  )
  const answeredMessage = cutter(lengthInPostgres, (message) => {
    const kind = String.fromCharCode(message[0]!)
    if (kind === 'Z') owed--
    if (kind === 't' && described > 0) {
      described--
      owed--
    }
    close()
  })
  return {
    get turns() {
      return turns
    },
    name: '',
    said: saidMessage,
    answered: answeredMessage,
  }
}

function textAt(message: Buffer, from: number): string {
  return message.toString('utf8', from, message.indexOf(0, from))
}

/** Every command is answered once. What is pushed comes without having been asked for, and subscribing is answered so. */
export function redisTalk(onTurn: (said: string) => void): Talk {
  let owed = 0
  let turns = 0
  let name = ''
  const said = cutter(lengthInRedis, (command) => {
    const [verb = '', ...words] = wordsOf(command)
    if (owed === 0) {
      turns++
      onTurn(`${name} ${verb} ${words.join(' ').slice(0, 200)}`)
    }
    if (!/subscribe$/i.test(verb)) owed++
    if (verb.toLowerCase() === 'client' && words[0]?.toLowerCase() === 'setname') name = words[1] ?? ''
  })
  const answered = cutter(lengthInRedis, (reply) => {
    if (kindAt(reply, 0) !== '>') owed--
  })
  return {
    get turns() {
      return turns
    },
    get name() {
      return name
    },
    said,
    answered,
  }
}

const kindAt = (bytes: Buffer, at: number): string => String.fromCharCode(bytes[at] ?? 0)

/** Kinds of values that say how many bytes follow, and those that say how many values do (RESP 3; a map has pairs). */
const COUNTS_BYTES = new Set(['$', '=', '!'])
const VALUES_PER_COUNT: Readonly<Record<string, number>> = { '*': 1, '~': 1, '>': 1, '%': 2 }

/** How long the value that begins there is. */
function lengthInRedis(bytes: Buffer, from = 0): number | undefined {
  const end = bytes.indexOf('\r\n', from)
  if (end === -1) return undefined
  const kind = kindAt(bytes, from)
  const afterLine = end + 2
  const count = Number(bytes.toString('latin1', from + 1, end))
  if (COUNTS_BYTES.has(kind)) return (count < 0 ? afterLine : afterLine + count + 2) - from
  let at = afterLine
  for (let left = (VALUES_PER_COUNT[kind] ?? 0) * count; left > 0; left--) {
    const length = lengthInRedis(bytes, at)
    if (length === undefined || at + length > bytes.length) return undefined
    at += length
  }
  return at - from
}

function wordsOf(command: Buffer): string[] {
  const lines = command.toString('utf8').split('\r\n')
  return lines.filter((_, index) => index >= 2 && index % 2 === 0)
}
