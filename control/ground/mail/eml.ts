/** Reads back the messages that message.ts writes: two parts, one boundary. For the local mail page only. */
export interface ReadMessage {
  readonly subject: string
  readonly to: string
  readonly date: string
  readonly text: string
  readonly html: string
}

export function readMessage(source: string): ReadMessage {
  const { headers, body } = split(source.replaceAll('\r\n', '\n'))
  const boundary = /boundary="?([^";]+)"?/.exec(headers.get('content-type') ?? '')?.[1] ?? ''
  const parts = body.split(`\n--${boundary}`).map((part) => split(part.replace(/^\n/, '')))
  const contentOf = (type: string): string => {
    const part = parts.find(({ headers: own }) => own.get('content-type')?.startsWith(type))
    return part ? decode(part.body, part.headers.get('content-transfer-encoding')) : ''
  }
  return {
    subject: decodeWords(headers.get('subject') ?? ''),
    to: decodeWords(headers.get('to') ?? ''),
    date: headers.get('date') ?? '',
    text: contentOf('text/plain'),
    html: contentOf('text/html'),
  }
}

function split(source: string): { headers: Map<string, string>; body: string } {
  const end = source.indexOf('\n\n')
  const head = (end === -1 ? source : source.slice(0, end)).replace(/\n[ \t]+/g, ' ')
  const fields = head.split('\n').flatMap((line) => {
    const [, name, value = ''] = /^([\w-]+): ?(.*)$/.exec(line) ?? []
    return name === undefined ? [] : [[name.toLowerCase(), value] as const]
  })
  return { headers: new Map(fields), body: end === -1 ? '' : source.slice(end + 2) }
}

function decode(body: string, encoding: string | undefined): string {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString('utf8')
  if (encoding !== 'quoted-printable') return body
  return quotedBytes(body.replace(/=\n/g, '')).toString('utf8')
}

function quotedBytes(text: string): Buffer {
  return Buffer.from(
    text.replace(/=([0-9A-F]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
}

/** RFC 2047 encoded words; the space between two of them is not part of the text. */
function decodeWords(value: string): string {
  return value
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?utf-8\?([QB])\?([^?]*)\?=/gi, (_, encoding: string, text: string) =>
      encoding.toUpperCase() === 'B'
        ? Buffer.from(text, 'base64').toString('utf8')
        : quotedBytes(text.replaceAll('_', ' ')).toString('utf8'),
    )
}
