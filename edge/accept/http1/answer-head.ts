/**
 * Answers as node:http writes them, prepared: the same list of headers is put into bytes once, and what is asked for again
 * within a second is sent in one piece, head and body, that was put together for all of them.
 */
import { nodeHttp } from '../../../shared/http/node-http.ts'
import type { HeaderList } from '../../context.ts'
import type { HttpDate } from '../messages/http-date.ts'
import { KEEP_ALIVE_MS } from '../timeouts.ts'

const { STATUS_CODES, validateHeaderName, validateHeaderValue } = nodeHttp

export interface AnswerHeads {
  /** Status line and fields. Throws for what cannot be said in a field, as node:http does. */
  fields(status: number, headers: HeaderList): Buffer
  /** The rest: the date, how the connection goes on, the empty line. */
  rest(isLast: boolean): Buffer
  /** The whole answer in one piece, if it is one that many ask for. Its connection goes on. */
  whole(status: number, headers: HeaderList, body: Buffer): Buffer | undefined
}

interface Prepared {
  readonly status: number
  readonly bytes: Buffer
}

/** What was asked for in this second. */
interface Asked {
  readonly status: number
  readonly body: Buffer
  whole: Buffer | undefined
}

/** How much is kept of answers in one piece, and how many are watched for it; both are forgotten when the second is over. */
const MAX_WHOLE_BYTES = 8_000_000
const MAX_ASKED = 1000

const GOES_ON = `Connection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_MS / 1000}\r\n\r\n`
const ENDS = 'Connection: close\r\n\r\n'

export function createAnswerHeads(date: HttpDate): AnswerHeads {
  const prepared = new WeakMap<HeaderList, Prepared>()
  let asked = new Map<HeaderList, Asked>()
  let wholeBytes = 0
  let dated = ''
  let goesOn = Buffer.alloc(0)
  let ends = Buffer.alloc(0)

  function fields(status: number, headers: HeaderList): Buffer {
    const known = prepared.get(headers)
    if (known?.status === status) return known.bytes
    const bytes = writeFields(status, headers)
    prepared.set(headers, { status, bytes })
    return bytes
  }

  function keepTime(): void {
    const text = date.text()
    if (text === dated) return
    dated = text
    goesOn = Buffer.from(`Date: ${text}\r\n${GOES_ON}`, 'latin1')
    ends = Buffer.from(`Date: ${text}\r\n${ENDS}`, 'latin1')
    asked = new Map()
    wholeBytes = 0
  }

  return {
    fields,
    rest(isLast) {
      keepTime()
      return isLast ? ends : goesOn
    },
    whole(status, headers, body) {
      keepTime()
      const known = asked.get(headers)
      if (known?.status !== status || known.body !== body) {
        if (asked.size < MAX_ASKED) asked.set(headers, { status, body, whole: undefined })
        return undefined
      }
      if (known.whole === undefined && wholeBytes + body.length <= MAX_WHOLE_BYTES) {
        known.whole = Buffer.concat([fields(status, headers), goesOn, body])
        wholeBytes += known.whole.length
      }
      return known.whole
    },
  }
}

function writeFields(status: number, headers: HeaderList): Buffer {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`
  for (let index = 0; index < headers.length; index += 2) {
    const [name = '', value = ''] = [headers[index], headers[index + 1]]
    validateHeaderName(name)
    validateHeaderValue(name, value)
    text += `${name}: ${value}\r\n`
  }
  return Buffer.from(text, 'latin1')
}
