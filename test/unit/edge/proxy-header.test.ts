import { expect, test } from 'vitest'
import { readProxyHeader } from '../../../edge/accept/visitors/proxy-header.ts'

const SIGNATURE = '\r\n\r\n\0\r\nQUIT\n'

/** A header of version 2, with its facts as bytes. */
function binary({
  versionAndCommand = 0x21,
  family = 0x11,
  body,
}: {
  versionAndCommand?: number
  family?: number
  body: Buffer
}) {
  const head = Buffer.from([versionAndCommand, family, body.length >> 8, body.length & 0xff])
  return Buffer.concat([Buffer.from(SIGNATURE, 'latin1'), head, body])
}

const V4 = Buffer.from([192, 0, 2, 1, 198, 51, 100, 1, 0xdc, 4, 1, 0xbb])
const V6 = Buffer.concat([
  Buffer.from('20010db8000000000000000000000001', 'hex'),
  Buffer.from('20010db8000000000000000000000002', 'hex'),
  Buffer.from([0xdc, 4, 1, 0xbb]),
])
const MAPPED = Buffer.concat([Buffer.from('00000000000000000000ffffc0000201', 'hex'), V6.subarray(16)])
const TLV = Buffer.from([0x02, 0, 3, 0x61, 0x2e, 0x62])

const read = (text: string, visitor?: string) => [Buffer.from(text, 'latin1'), visitor] as const

test.each([
  read('PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n', '192.0.2.1'),
  read('PROXY TCP6 2001:db8::1 2001:db8::2 0 65535\r\n', '2001:db8::1'),
  read('PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 56324 443\r\n', '192.0.2.1'),
  read('PROXY UNKNOWN\r\n'),
  read('PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n'),
  [binary({ body: V4 }), '192.0.2.1'] as const,
  [binary({ body: Buffer.concat([V4, TLV]) }), '192.0.2.1'] as const,
  [binary({ family: 0x21, body: V6 }), '2001:db8:0:0:0:0:0:1'] as const,
  [binary({ family: 0x21, body: MAPPED }), '192.0.2.1'] as const,
  [binary({ versionAndCommand: 0x20, family: 0, body: Buffer.alloc(0) }), undefined] as const,
  [binary({ versionAndCommand: 0x20, family: 0x11, body: V4 }), undefined] as const,
])('%j is read, at any cut and with what follows', (header, visitor) => {
  const expected = { kind: 'read', visitor, length: header.length }
  expect(readProxyHeader(Buffer.concat([header, Buffer.from('\x16\x03\x01')]))).toEqual(expected)
  expect(readProxyHeader(header)).toEqual(expected)
  for (let cut = 0; cut < header.length; cut++)
    expect(readProxyHeader(header.subarray(0, cut)), `${cut} bytes`).toEqual({ kind: 'unfinished' })
})

test.each([
  'PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n',
  'PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 1\r\n',
  'PROXY TCP4 2001:db8::1 2001:db8::2 56324 443\r\n',
  'PROXY TCP6 192.0.2.1 198.51.100.1 56324 443\r\n',
  'PROXY TCP4 192.0.2.256 198.51.100.1 56324 443\r\n',
  'PROXY TCP4 192.0.2.1 198.51.100.1 56324 65536\r\n',
  'PROXY TCP4 192.0.2.1 198.51.100.1 056324 443\r\n',
  'PROXY tcp4 192.0.2.1 198.51.100.1 56324 443\r\n',
  'PROXY UDP4 192.0.2.1 198.51.100.1 56324 443\r\n',
  'PROXY  TCP4 192.0.2.1 198.51.100.1 56324 443\r\n',
  `PROXY TCP4 ${'1'.repeat(107)}`,
  binary({ versionAndCommand: 0x11, body: V4 }),
  binary({ versionAndCommand: 0x22, body: V4 }),
  binary({ family: 0x12, body: V4 }),
  binary({ family: 0x31, body: Buffer.alloc(216) }),
  binary({ family: 0x21, body: V4 }),
  binary({ body: V4.subarray(0, 11) }),
  binary({ body: Buffer.alloc(8193) }),
])('%j is broken', (header) => {
  expect(readProxyHeader(Buffer.from(header as string, 'latin1'))).toEqual({ kind: 'broken' })
})

test.each([
  '\x16\x03\x01\x02\0',
  'GET / HTTP/1.1\r\n',
  'POST / HTTP/1.1\r\n',
  'PROXYX',
  '\r\n\r\nGET / HTTP/1.1',
  '\r\n\r\n\0\r\nQUIT\r',
])('%j is the visitor speaking', (bytes) => {
  expect(readProxyHeader(Buffer.from(bytes, 'latin1'))).toEqual({ kind: 'none' })
})
