import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readRequestHead } from '../../../edge/accept/http1/request-head.ts'
import { readByNode } from '../../support/read-by-node.ts'

const read = (text: string): ReturnType<typeof readRequestHead> => readRequestHead(Buffer.from(text, 'latin1'))
const get = (lines = '', target = '/'): string => `GET ${target} HTTP/1.1\r\nHost: a.example\r\n${lines}\r\n`

test('a plain head is read', () => {
  const head = read(get('User-Agent: x y\r\nX-Own:\t  v \t\r\nConnection: Keep-Alive\r\nempty:\r\n', '/a?b=c%20'))
  expect(head).toMatchObject({ method: 'GET', target: '/a?b=c%20', host: 'a.example' })
  expect(head?.header('user-agent')).toBe('x y')
  expect(head?.header('x-own')).toBe('v')
  expect(head?.header('empty')).toBe('')
  expect(head?.header('host')).toBe('a.example')
  expect(head?.header('cookie')).toBeUndefined()
  expect(read('HEAD / HTTP/1.1\r\nHOST: b\r\n\r\n')).toMatchObject({ method: 'HEAD', host: 'b' })
})

test.each([
  ['nothing', ''],
  ['line ends alone', '\r\n\r\n'],
  ['a method alone', 'GET '],
  ['another method', get().replace('GET', 'PUT')],
  ['a method in small letters', get().replace('GET', 'get')],
  ['a longer method', get().replace('GET', 'GETS')],
  ['another version', get().replace('1.1', '1.2')],
  ['a version alone', get().replace('HTTP/1.1', 'HTTP/1')],
  ['HTTP/1.0 that would go on', get('Connection: keep-alive\r\n').replace('1.1', '1.0')],
  ['HTTP/1.0 without a host', 'GET / HTTP/1.0\r\n\r\n'],
  ['no version', 'GET /\r\nHost: a\r\n\r\n'],
  ['a target in absolute form', get('', 'http://a.example/')],
  ['an asterisk', get('', '*')],
  ['a space in the target', get('', '/a b')],
  ['a byte beyond ASCII in the target', get('', '/\u00e4')],
  ['a DEL in the target', get('', '/\u007f')],
  ['no host', 'GET / HTTP/1.1\r\nX: a\r\n\r\n'],
  ['no fields', 'GET / HTTP/1.1\r\n\r\n'],
  ['an empty host', 'GET / HTTP/1.1\r\nHost: \r\n\r\n'],
  ['two hosts', get('host: a.example\r\n')],
  ['a name twice', get('X: 1\r\nx: 2\r\n')],
  ['a length', get('Content-Length: 0\r\n')],
  ['a transfer coding', get('TRANSFER-ENCODING: chunked\r\n')],
  ['an upgrade', get('Upgrade: websocket\r\n')],
  ['the end of the connection, twice', get('Connection: close\r\nConnection: close\r\n')],
  ['an end with more to say', get('Connection: close, x\r\n')],
  ['a connection with more to say', get('Connection: keep-alive, x\r\n')],
  ['an expectation', get('Expect: 100-continue\r\n')],
  ['trailers', get('TE: trailers\r\n')],
  ['a space before the colon', get('X : a\r\n')],
  ['a name in quotes', get('"X": a\r\n')],
  ['an empty name', get(': a\r\n')],
  ['no colon', get('a\r\n')],
  ['a folded line', get('X: a\r\n b\r\n')],
  ['a null', get('X: \0\r\n')],
  ['a byte beyond ASCII', get('X: \u00e4\r\n')],
  ['LF alone', get().replaceAll('\r\n', '\n')],
  ['LF alone inside', get('X: a\nY: b\r\n')],
  ['CR alone inside', get('X: a\rY: b\r\n')],
  ['CR before the end', get('X: a\r\r\n')],
  ['an empty line in front', `\r\n${get()}`],
  ['something behind', `${get()}x`],
  ['two requests', get() + get()],
  ['an empty line behind', `${get()}\r\n`],
  ['too many lines', get(Array.from({ length: 64 }, (_, n) => `x${n}: a\r\n`).join(''))],
  ['too many bytes', get(`X: ${'a'.repeat(9000)}\r\n`)],
])('%s is left to node:http', (_, text) => {
  expect(read(text)).toBeUndefined()
})

test.each([
  ['a connection goes on', get(), false],
  ['a connection is to go on', get('Connection: keep-alive\r\n'), false],
  ['a connection is to end', get('Connection: close\r\n'), true],
  ['a connection is to end, in capitals', get('CONNECTION: Close\r\n'), true],
  ['HTTP/1.0 ends it', get().replace('1.1', '1.0'), true],
  ['HTTP/1.0 ends it, and says so', get('Connection: close\r\n').replace('1.1', '1.0'), true],
  ['HEAD of HTTP/1.0', get().replace('1.1', '1.0').replace('GET', 'HEAD'), true],
])('%s', (_, text, isLast) => {
  expect(read(text)?.isLast).toBe(isLast)
})

test('a head that is cut off anywhere is left to node:http', () => {
  const whole = get('Cookie: a=1\r\nAccept: */*\r\n')
  for (let end = 0; end < whole.length; end++) expect(read(whole.slice(0, end)), String(end)).toBeUndefined()
  expect(read(whole)).toBeDefined()
})

/** Pieces that heads are made of, and those that they are broken with. */
const piece = fc.constantFrom(
  ...[
    'GET',
    'HEAD',
    'POST',
    ' ',
    '/',
    '/a?b',
    ' HTTP/1.1',
    ' HTTP/1.0',
    'close',
    'Connection: close',
    '\r\n',
    '\n',
    '\r',
    ':',
    ': ',
    '\t',
    'Host: a',
    'x',
    'X-Y: z',
  ],
  ...['Content-Length: 1', 'Transfer-Encoding: chunked', 'Connection: keep-alive', '\0', '\u00e4', '\u007f', '\u000b'],
)
/** What follows a head, or how it wants its connection to go on. */
const TWO = ''
const WAYS = [
  [TWO, '1.1'],
  ['X-More: w\r\n', '1.1'],
  ['Connection: close\r\n', '1.1'],
  ['Connection: keep-alive\r\n', '1.0'],
  ['X-More: w\r\n', '1.0'],
] as const
const change = fc.record({ at: fc.nat(120), cut: fc.nat(3), insert: piece })

test('what is read is what node:http reads, to the last byte', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 3 }), fc.constantFrom(...WAYS), async (changes, [way, version]) => {
      const own = get(`Accept: */*\r\nCookie: a=1; b=2\r\n${way}X-Own: v\r\n`, '/a/b?c=d').replace('1.1', version)
      let text = own + (way === TWO ? get() : '')
      for (const { at, cut, insert } of changes) text = text.slice(0, at) + insert + text.slice(at + cut)
      const bytes = Buffer.from(text, 'latin1')
      const head = readRequestHead(bytes)
      if (head === undefined) return
      const { requests, keepsAlive, isBroken } = await readByNode(bytes)
      const [request] = requests
      expect(isBroken).toBe(false)
      expect(requests).toHaveLength(1)
      expect(request?.complete).toBe(true)
      expect({ method: head.method, target: head.target, host: head.host }).toEqual({
        method: request?.method,
        target: request?.url,
        host: request?.headers.host,
      })
      expect(head.isLast).toBe(!keepsAlive[0])
      for (const [name, value] of Object.entries(request?.headers ?? {})) expect(head.header(name)).toBe(value)
      expect(request?.rawHeaders).toHaveLength(2 * Object.keys(request?.headers ?? {}).length)
    }),
    { numRuns: 2000 },
  )
})
