/** What `_headers` adds to an answer. */
import { describe, expect, test } from 'vitest'
import { indexManifest } from '../../../edge/locate/site-index.ts'
import { manifestOf } from '../../support/manifests.ts'
import type { Rules } from '../../support/manifests.ts'
import { ask, MORE } from './locating.ts'

describe('_headers', () => {
  test('that no client takes are an error, those that fit are shared', () => {
    const long = (count: number): Rules => ({
      headers: Array.from({ length: count }, (_, index) => [`/*`, [[`x-${index}`, 'v'.repeat(1000)]]]),
    })
    expect(() => ask('/page', { rules: long(40) })).toThrow('bytes of headers')
    const index = indexManifest(manifestOf(MORE, long(20)))
    expect(index.headers.for('/page')).toBe(index.headers.for('/about/'))
  })
  test('may be 32,768 bytes, names and values counted', () => {
    const sized = (chars: number): Rules => ({
      headers: [
        ['/*', [['x-long', 'v'.repeat(30_000)]]],
        [
          '/page',
          [
            ['x-rest', 'v'.repeat(chars)],
            ['x-none', null],
          ],
        ],
      ],
    })
    expect(() => ask('/page', { rules: sized(32_768 - 30_000 - 18) })).not.toThrow()
    expect(() => ask('/page', { rules: sized(32_768 - 30_000 - 17) })).toThrow('32769 bytes of headers')
    expect(() => ask('/about/', { rules: sized(32_768) })).not.toThrow()
  })
  test('of one set have one name, whichever version they are of, and no rule means no name', () => {
    const indexOf = (value: string, from = '/page') =>
      indexManifest(manifestOf(MORE, { headers: [[from, [['x-a', value]]]] })).headers
    expect(indexOf('1').for('/page').id).toMatch(/^[\w-]{16}$/)
    expect(indexOf('1').for('/page').id).toBe(indexOf('1', '/*').for('/page').id)
    expect(indexOf('1').for('/page').id).not.toBe(indexOf('2').for('/page').id)
    expect(indexOf('1').for('/about/')).toEqual({ id: '', list: [] })
    expect(indexManifest(manifestOf(MORE)).headers.for('/page')).toEqual({ id: '', list: [] })
  })
  test('are put together once for up to 64 sets', () => {
    const numbers = Array.from({ length: 65 }, (_, number) => number)
    const headers = numbers.map((number) => [`/${number}`, [['x-a', `${number}`]]] as const)
    const index = indexManifest(manifestOf([], { headers }))
    const first = index.headers.for('/0')
    for (const number of numbers.slice(0, 64)) index.headers.for(`/${number}`)
    expect(index.headers.for('/0')).toBe(first)
    index.headers.for('/64')
    expect(index.headers.for('/0')).toEqual(first)
    expect(index.headers.for('/0')).not.toBe(first)
  })
  const rules: Rules = {
    headers: [
      [
        '/*',
        [
          ['x-a', '1'],
          ['cache-control', 'max-age=60'],
        ],
      ],
      [
        '/docs/*',
        [
          ['x-a', '2'],
          ['cache-control', 'max-age=90'],
          ['x-b', 'b'],
        ],
      ],
      [
        '/docs/deep/*',
        [
          ['x-b', null],
          ['link', '</a>'],
          ['link', '</b>'],
        ],
      ],
    ],
  }
  const custom = (target: string): unknown => {
    const intent = ask(target, { rules })
    return intent.kind === 'asset' ? Object.fromEntries(intent.custom.list) : intent
  }
  test('every matching rule counts: single values are replaced, lists grow, null removes', () => {
    expect(custom('/page')).toEqual({ 'x-a': '1', 'cache-control': 'max-age=60' })
    expect(custom('/docs/')).toEqual({ 'x-a': '1, 2', 'cache-control': 'max-age=90', 'x-b': 'b' })
    expect(custom('/docs/deep/x')).toEqual({
      'x-a': '1, 2',
      'cache-control': 'max-age=90',
      'x-b': null,
      link: '</a>, </b>',
    })
  })
  test('they apply to the path that was asked for', () => {
    expect(ask('/page', { rules: { headers: [['/page.html', [['x-a', '1']]]] } })).toMatchObject({
      custom: { list: [] },
    })
  })
})
