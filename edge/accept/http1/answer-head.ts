/** Heads of answers as node:http writes them, prepared: the same list of headers is put into bytes once. */
import { STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http'
import type { HeaderList } from '../../context.ts'
import type { HttpDate } from '../http-date.ts'
import { KEEP_ALIVE_MS } from '../timeouts.ts'

export interface AnswerHeads {
  /** Status line and fields. Throws for what cannot be said in a field, as node:http does. */
  fields(status: number, headers: HeaderList): Buffer
  /** The rest: the date, how the connection goes on, the empty line. */
  rest(isLast: boolean): Buffer
}

interface Prepared {
  readonly status: number
  readonly bytes: Buffer
}

const GOES_ON = `Connection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_MS / 1000}\r\n\r\n`
const ENDS = 'Connection: close\r\n\r\n'

export function createAnswerHeads(date: HttpDate): AnswerHeads {
  const prepared = new WeakMap<HeaderList, Prepared>()
  let dated = ''
  let goesOn = Buffer.alloc(0)
  let ends = Buffer.alloc(0)
  return {
    fields(status, headers) {
      const known = prepared.get(headers)
      if (known?.status === status) return known.bytes
      const bytes = writeFields(status, headers)
      prepared.set(headers, { status, bytes })
      return bytes
    },
    rest(isLast) {
      const text = date.text()
      if (text !== dated) {
        dated = text
        goesOn = Buffer.from(`Date: ${text}\r\n${GOES_ON}`, 'latin1')
        ends = Buffer.from(`Date: ${text}\r\n${ENDS}`, 'latin1')
      }
      return isLast ? ends : goesOn
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
