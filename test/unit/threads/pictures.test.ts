/** What a pasted image is, by its bytes: pictures of pixels, and nothing else, whatever it is called. */
import { expect, test } from 'vitest'
import { pictureOf } from '../../../control/drops/threads/pictures.ts'

const latin = (text: string): Buffer => Buffer.from(text, 'latin1')
const u16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255])
const u16le = (value: number): Buffer => Buffer.from([value & 255, value >> 8])
const u32 = (value: number): Buffer => Buffer.concat([u16(value >>> 16), u16(value & 0xffff)])
const join = (...parts: Buffer[]): Buffer => Buffer.concat(parts)

const png = (width: number, height: number): Buffer =>
  join(latin('\x89PNG\r\n\x1a\n'), u32(13), latin('IHDR'), u32(width), u32(height), Buffer.alloc(9))
const gif = (width: number, height: number): Buffer =>
  join(latin('GIF89a'), u16le(width), u16le(height), Buffer.alloc(4))
const frame = (marker: number, width: number, height: number): Buffer =>
  join(Buffer.from([0xff, marker, 0, 17, 8]), u16(height), u16(width), Buffer.alloc(12))
const jpeg = (marker: number, ...before: Buffer[]): Buffer =>
  join(Buffer.from([0xff, 0xd8]), ...before, frame(marker, 30, 20))
const segment = (marker: number, bytes: number): Buffer =>
  join(Buffer.from([0xff, marker]), u16(bytes + 2), Buffer.alloc(bytes, 0xff))
const webp = (kind: string, ...rest: Buffer[]): Buffer =>
  join(latin('RIFF\0\0\0\0WEBP'), latin(kind), Buffer.alloc(4), ...rest, Buffer.alloc(4))

test.each([
  ['PNG', png(30, 20), 'image/png', 30, 20],
  ['GIF', gif(30, 20), 'image/gif', 30, 20],
  ['GIF of 1987', join(latin('GIF87a'), u16le(300), u16le(2), Buffer.alloc(4)), 'image/gif', 300, 2],
  ['JPEG', jpeg(0xc0), 'image/jpeg', 30, 20],
  ['JPEG with what a camera says, and tables', jpeg(0xc2, segment(0xe1, 900), segment(0xc4, 40)), 'image/jpeg', 30, 20],
  ['WebP', webp('VP8 ', Buffer.alloc(6), u16le(30 | 0x4000), u16le(20)), 'image/webp', 30, 20],
  ['WebP without loss', webp('VP8L', Buffer.from([0x2f, 29, 0xc0, 4, 0]), Buffer.alloc(5)), 'image/webp', 30, 20],
  ['WebP with more', webp('VP8X', Buffer.alloc(4), Buffer.from([29, 0, 0, 19, 0, 0])), 'image/webp', 30, 20],
  ['as large as can be', png(6000, 6000), 'image/png', 6000, 6000],
])('%s', (_, bytes, type, width, height) => expect(pictureOf(bytes)).toEqual({ type, width, height }))

test.each([
  ['nothing', Buffer.alloc(0)],
  ['a page', latin('<!doctype html><script>alert(1)</script>'.padEnd(60))],
  ['a drawing that runs scripts', latin('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')],
  ['a page that begins as an image', latin('GIF89b<script>alert(1)</script>')],
  ['a PDF', latin('%PDF-1.7'.padEnd(60))],
  ['too many pixels', png(6001, 6000)],
  ['no pixels', png(0, 20)],
  ['a PNG that ends', png(30, 20).subarray(0, 32)],
  ['a PNG without its head', Buffer.from(png(30, 20).toString('latin1').replace('IHDR', 'IDAT'), 'latin1')],
  ['a GIF that ends', gif(30, 20).subarray(0, 13)],
  ['a JPEG that ends', jpeg(0xc0).subarray(0, 10)],
  ['a JPEG of tables alone', join(Buffer.from([0xff, 0xd8]), segment(0xc4, 40), segment(0xc8, 4), segment(0xcc, 40))],
  ['a JPEG that does not go on', join(Buffer.from([0xff, 0xd8, 0xff, 0xe1, 0, 0]), Buffer.alloc(40))],
  ['a WebP of another kind', webp('ABCD', Buffer.alloc(20))],
  ['a sound', join(latin('RIFF\0\0\0\0WAVE'), Buffer.alloc(40))],
])('%s is none', (_, bytes) => expect(pictureOf(bytes)).toBeUndefined())
