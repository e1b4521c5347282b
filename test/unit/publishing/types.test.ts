import { describe, expect, test } from 'vitest'
import {
  contentTypeOf,
  isCompressible,
  mediaTypeOf,
  servedTypeOf,
} from '../../../control/drops/publishing/files/types.ts'

describe('content types', () => {
  test.each([
    ['index.html', 'text/html; charset=utf-8'],
    ['a/b.HTM', 'text/html; charset=utf-8'],
    ['a.css', 'text/css; charset=utf-8'],
    ['a.js', 'text/javascript; charset=utf-8'],
    ['a.mjs', 'text/javascript; charset=utf-8'],
    ['a.json', 'application/json'],
    ['a.js.map', 'application/json'],
    ['site.webmanifest', 'application/manifest+json; charset=utf-8'],
    ['a.md', 'text/markdown; charset=utf-8'],
    ['a.txt', 'text/plain; charset=utf-8'],
    ['a.ts', 'text/plain; charset=utf-8'],
    ['a.py', 'text/x-python; charset=utf-8'],
    ['a.vcf', 'text/vcard; charset=utf-8'],
    ['a.mobileconfig', 'application/x-apple-aspen-config'],
    ['a.svg', 'image/svg+xml'],
    ['a.wasm', 'application/wasm'],
    ['a.avif', 'image/avif'],
    ['a.webp', 'image/webp'],
    ['a.woff2', 'font/woff2'],
    ['a.mp4', 'video/mp4'],
    ['a.pdf', 'application/pdf'],
    ['favicon.ico', 'image/vnd.microsoft.icon'],
    ['a.unknown', 'application/octet-stream'],
    ['.env', 'application/octet-stream'],
    ['README', 'text/plain; charset=utf-8'],
    ['__proto__', 'application/octet-stream'],
    ['a.__proto__', 'application/octet-stream'],
    ['a.constructor', 'application/octet-stream'],
  ])('%s is %s', (path, type) => expect(contentTypeOf(mediaTypeOf(path), 'utf-8')).toBe(type))

  test('.ts that is no text is a piece of a video', () => {
    expect(servedTypeOf('text/plain', 'src/a.ts', 'utf-8')).toBe('text/plain')
    expect(servedTypeOf('text/plain', 'hls/segment0.TS', null)).toBe('video/mp2t')
    expect(servedTypeOf('text/plain', 'a.txt', null)).toBe('text/plain')
  })

  test('text that is not UTF-8 has no charset in its header', () => {
    expect(contentTypeOf('text/html', null)).toBe('text/html')
  })

  test.each(['a.png', 'a.jpg', 'a.mp4', 'a.woff2', 'a.zip', 'a.gz'])('%s is not worth compressing', (path) => {
    expect(isCompressible(mediaTypeOf(path))).toBe(false)
  })
  test.each(['a.html', 'a.js', 'a.svg', 'a.json', 'a.wasm', 'a.ttf', 'feed.xml'])('%s is worth compressing', (path) => {
    expect(isCompressible(mediaTypeOf(path))).toBe(true)
  })
})
