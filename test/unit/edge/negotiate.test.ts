import { describe, expect, test } from 'vitest'
import { chooseLanguage } from '../../../edge/rewrite/language.ts'
import { chooseEncoding } from '../../../edge/rewrite/negotiate.ts'
import type { Encoding } from '../../../shared/manifest.ts'

function available(...names: Encoding[]): Partial<Record<Encoding, { hash: string; size: number }>> {
  return Object.fromEntries(names.map((name) => [name, { hash: 'a'.repeat(64), size: 1 }]))
}
const all = available('br', 'zstd', 'gzip')

describe('accept-encoding', () => {
  test.each<[string | undefined, string]>([
    [undefined, 'identity'],
    ['', 'identity'],
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip, deflate, br', 'br'],
    ['gzip, deflate', 'gzip'],
    ['zstd, gzip', 'zstd'],
    ['GZIP', 'gzip'],
    ['x-gzip', 'gzip'],
    ['deflate', 'identity'],
    ['gzip;q=1, br;q=0.5', 'gzip'],
    ['gzip;q=0.5, br;q=0.5', 'br'],
    ['br;q=0', 'identity'],
    ['br;q=0, gzip', 'gzip'],
    ['*', 'br'],
    ['*;q=0.1', 'br'],
    ['*, br;q=0', 'zstd'],
    ['*;q=0', 'identity'],
    ['*;q=0, gzip', 'gzip'],
    ['identity', 'identity'],
    ['identity, gzip', 'gzip'],
    ['identity;q=1, br;q=0.5', 'identity'],
    ['identity;q=0, br;q=0.001', 'br'],
    ['identity;q=0', 'identity'],
    ['identity;q=0.5, *;q=0.6', 'br'],
    ['br ; q = 0.8 , gzip ; q=0.9', 'gzip'],
    ['br;q=nonsense', 'identity'],
    ['br;q=7', 'br'],
    [',,;;q=', 'identity'],
    [`br,${'x'.repeat(600)}`, 'identity'],
  ])('%j gets %s', (header, expected) => expect(chooseEncoding(header, all)).toBe(expected))

  test('only what is stored is chosen', () => {
    expect(chooseEncoding('gzip, deflate, br, zstd', available('gzip'))).toBe('gzip')
    expect(chooseEncoding('gzip, deflate, br, zstd', available())).toBe('identity')
    expect(chooseEncoding('gzip, deflate, br, zstd', undefined)).toBe('identity')
    expect(chooseEncoding('br', available('gzip'))).toBe('identity')
  })
})

describe('accept-language', () => {
  test.each<[string | undefined, string]>([
    [undefined, 'en'],
    ['', 'en'],
    ['de', 'de'],
    ['de-AT,de;q=0.9,en;q=0.8', 'de'],
    ['pt-BR', 'pt'],
    ['ja,fr;q=0.5', 'fr'],
    ['ja', 'en'],
    ['fr;q=0.1, cs;q=0.9', 'cs'],
    ['sv, da', 'sv'],
    ['fi;q=0', 'en'],
    ['*', 'en'],
    ['it;q=0.5,*;q=0.9', 'en'],
    ['DE', 'de'],
    ['deutsch', 'en'],
    ['__proto__, constructor', 'en'],
    [`${'x,'.repeat(50)}de`, 'en'],
  ])('%j gets %s', (header, expected) => expect(chooseLanguage(header)).toBe(expected))
})
