import { describe, expect, test } from 'vitest'
import {
  contentTypeOf,
  isCompressible,
  isImmutableName,
  mediaTypeOf,
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

describe('names that carry a hash of the content', () => {
  test.each([
    ...['assets/index-BX3k9f2a.js', 'main.4f3d2a1b.css', 'static/js/main.e7a3b1c9.chunk.js', 'app.a1b2c3d4e5f60718.js'],
    ...[
      'assets/logo-Dq5n_2Xk.svg',
      '_next/static/chunks/4bd1b696-182b6b13bdad92e3.js',
      'chunk-2KLS3F4N.js',
      'index-BX3k9f2a.js.map',
    ],
    'index-Bq3xVd9K.js',
    'assets/my-component-Bq3xVd9K.js',
    'assets/vue.esm-bundler-D9XqU_1a.js',
    'assets/a-B_-3xVd9.js',
    'assets/index-CZq-8dVx.js',
    'assets/index-DiwrgTda.css',
    '_astro/page.DiwrgTda.js',
    'assets/index-Bq3xVd9K.js.map',
  ])('%s', (path) => expect(isImmutableName(path)).toBe(true))

  test.each([
    ...[
      'index.html',
      'app.js',
      'main.css',
      'jquery-3.7.1.min.js',
      'report-2024-05-01.pdf',
      'photo-20240501.jpg',
      'app-component.js',
    ],
    ...[
      'my-background.png',
      'font-awesome.css',
      'bootstrap.bundle.min.js',
      'data.20240501.json',
      'page-4f3d2a1b.html',
      'version-10.12.2024.txt',
    ],
    ...[
      'IMG-20240501.jpg',
      'logo-darkmode.svg',
      'Screenshot-Desktop1.png',
      'chapter-Section12.js',
      'a.deadbeef.js',
      'a.12345678.js',
      'icons/logo-MyHeader.js',
      'assets/app-overview.js',
      'assets/app-Overview.js',
    ],
  ])('not %s', (path) => expect(isImmutableName(path)).toBe(false))
})
