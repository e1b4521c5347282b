/**
 * The heads that need no parser: GET and HEAD of HTTP/1.1 without a body, whole and alone in what was read, and those of
 * HTTP/1.0 that end their connection. Pure, and one pass over the bytes. What is not plainly one of them is undefined, and
 * node:http decides what it is:
 *
 *   another method, version or form of target     a head that is cut off, or has anything behind it
 *   a body, an upgrade, an expectation            a name that comes twice, two hosts, none
 *   a byte that RFC 9112 does not name here       lines that end or fold otherwise
 */

export interface RequestHead {
  readonly method: 'GET' | 'HEAD'
  /** Origin form, visible ASCII. */
  readonly target: string
  readonly host: string
  /** The connection ends after the answer: the visitor says so, or speaks HTTP/1.0. */
  readonly isLast: boolean
  /** By lower-case name. */
  header(name: string): string | undefined
}

/** What browsers send has a few hundred bytes; with cookies, a few thousand. */
const MAX_BYTES = 8192
const MAX_LINES = 64

/** They say how the message or the connection goes on: not here. */
const NOT_PLAIN: ReadonlySet<string> = new Set([
  'content-length',
  'transfer-encoding',
  'trailer',
  'te',
  'upgrade',
  'http2-settings',
  'expect',
  'keep-alive',
  'proxy-connection',
])

/** As they are mostly written. Others are put into lower case each time. */
const NAMES: ReadonlyMap<string, string> = new Map(
  `Host User-Agent Accept Accept-Encoding Accept-Language Cookie Connection Referer Origin DNT Range If-Range If-Match
   If-None-Match If-Modified-Since Cache-Control Pragma Priority Purpose Via X-Forwarded-For X-Forwarded-Proto
   X-Forwarded-Host X-Real-IP X-Requested-With Authorization Upgrade-Insecure-Requests Sec-GPC Sec-Purpose
   Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User Sec-CH-UA Sec-CH-UA-Mobile Sec-CH-UA-Platform`
    .split(/\s+/)
    .flatMap((name) => [
      [name, name.toLowerCase()],
      [name.toLowerCase(), name.toLowerCase()],
    ]),
)

const [TAB, LF, CR, SPACE, SLASH, COLON] = [0x09, 0x0a, 0x0d, 0x20, 0x2f, 0x3a] as const
const GET_ = Buffer.from('GET ')
const HEAD_ = Buffer.from('HEAD ')
const HTTP_1_1 = Buffer.from(' HTTP/1.1\r\n')
const HTTP_1_0 = Buffer.from(' HTTP/1.0\r\n')

const [IN_NAME, IN_TARGET, IN_VALUE] = [1, 2, 4] as const
/** What each byte may stand in. */
const PLACES = Uint8Array.from({ length: 256 }, (_, code) => {
  const isVisible = code > SPACE && code < 0x7f
  const isToken = isVisible && !'"(),/:;<=>?@[\\]{}'.includes(String.fromCharCode(code))
  const isValue = isVisible || code === SPACE || code === TAB
  return (isToken ? IN_NAME : 0) | (isVisible ? IN_TARGET : 0) | (isValue ? IN_VALUE : 0)
})

/** Linear in the bytes; the lines are few. */
export function readRequestHead(bytes: Buffer): RequestHead | undefined {
  const { length } = bytes
  if (length > MAX_BYTES) return undefined
  // Most of what is not plain is told apart here.
  if (bytes[length - 1] !== LF || bytes[length - 2] !== CR || bytes[length - 3] !== LF) return undefined
  const method = startsWith(bytes, GET_, 0) ? 'GET' : startsWith(bytes, HEAD_, 0) ? 'HEAD' : undefined
  if (method === undefined) return undefined
  const targetAt = method.length + 1
  if (bytes[targetAt] !== SLASH) return undefined
  const targetEnd = endOf(bytes, targetAt, IN_TARGET)
  const isHttp10 = startsWith(bytes, HTTP_1_0, targetEnd)
  if (!isHttp10 && !startsWith(bytes, HTTP_1_1, targetEnd)) return undefined

  const text = bytes.toString('latin1')
  const fields: string[] = []
  let host: string | undefined
  let isLast = isHttp10
  let at = targetEnd + HTTP_1_1.length
  while (bytes[at] !== CR) {
    const nameEnd = endOf(bytes, at, IN_NAME)
    if (nameEnd === at || bytes[nameEnd] !== COLON) return undefined
    let valueAt = nameEnd + 1
    while (isBlank(bytes[valueAt])) valueAt += 1
    const lineEnd = endOf(bytes, valueAt, IN_VALUE)
    if (bytes[lineEnd] !== CR || bytes[lineEnd + 1] !== LF) return undefined
    let valueEnd = lineEnd
    while (valueEnd > valueAt && isBlank(bytes[valueEnd - 1])) valueEnd -= 1
    const written = text.slice(at, nameEnd)
    const name = NAMES.get(written) ?? written.toLowerCase()
    const value = text.slice(valueAt, valueEnd)
    if (name === 'host') host = value
    else if (name === 'connection') {
      isLast = value.toLowerCase() === 'close'
      // A connection of HTTP/1.0 that is to go on is no plain one.
      if (!isLast && (isHttp10 || value.toLowerCase() !== 'keep-alive')) return undefined
    } else if (NOT_PLAIN.has(name)) return undefined
    if (valueOf(fields, name) !== undefined || fields.length === 2 * MAX_LINES) return undefined
    fields.push(name, value)
    at = lineEnd + 2
  }
  // The empty line is the last.
  if (at + 2 !== length || host === undefined || host === '') return undefined
  return new PlainHead(method, text.slice(targetAt, targetEnd), host, isLast, fields)
}

class PlainHead implements RequestHead {
  readonly method: 'GET' | 'HEAD'
  readonly target: string
  readonly host: string
  readonly isLast: boolean
  readonly #fields: readonly string[]

  constructor(method: 'GET' | 'HEAD', target: string, host: string, isLast: boolean, fields: readonly string[]) {
    this.method = method
    this.target = target
    this.host = host
    this.isLast = isLast
    this.#fields = fields
  }

  header(name: string): string | undefined {
    return valueOf(this.#fields, name)
  }
}

function valueOf(fields: readonly string[], name: string): string | undefined {
  for (let index = 0; index < fields.length; index += 2) if (fields[index] === name) return fields[index + 1]
  return undefined
}

function endOf(bytes: Buffer, from: number, place: number): number {
  let at = from
  // Behind the end there is nothing, which stands nowhere.
  while (((PLACES[bytes[at] ?? 0] ?? 0) & place) !== 0) at += 1
  return at
}

function startsWith(bytes: Buffer, part: Buffer, at: number): boolean {
  for (let index = 0; index < part.length; index++) if (bytes[at + index] !== part[index]) return false
  return true
}

function isBlank(code: number | undefined): boolean {
  return code === SPACE || code === TAB
}
