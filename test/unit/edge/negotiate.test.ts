import { describe, expect, test } from 'vitest'
import { chooseLanguage } from '../../../edge/rewrite/language.ts'
import { chooseEncoding } from '../../../edge/rewrite/negotiate.ts'
import type { Encoding } from '../../../shared/contracts/manifest.ts'

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
    [`gzip,${'x'.repeat(495)}`, 'gzip'],
    [`gzip,${'x'.repeat(496)}`, 'identity'],
    ['br;q=0.5;level=11', 'br'],
    ['br;q=0.5;q=0, gzip;q=0.4', 'br'],
    ['gzip;q=0.', 'identity'],
    ['gzip;q=1.', 'gzip'],
    ['gzip;q=0.0001', 'identity'],
    ['gzip;q=0.001', 'gzip'],
    ['gzip;xq=1', 'identity'],
    ['gzip;qx=1', 'identity'],
    ['gzip;q=0.5, *;q=0', 'gzip'],
    ['identity;q=0.4, *;q=0.5, br;q=0.45', 'zstd'],
    ['gzip;q x=1', 'identity'],
    ['gzip;q=1x', 'identity'],
    ['gzip;q=1 x', 'identity'],
    // Weights above 1 are 1, and one that is not given is 1.
    ['gzip;q=2, br', 'br'],
    ['gzip, br;q=2', 'br'],
    ['identity;q=2, gzip;q=1', 'gzip'],
    ['identity, gzip;q=0.9', 'identity'],
    ['br;q=x, gzip;q=0', 'identity'],
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
    [`${'x,'.repeat(19)}de`, 'de'],
    [`${'x,'.repeat(20)}de`, 'en'],
    // 500 characters are looked at.
    [`${'x'.repeat(497)},de`, 'de'],
    [`${'x'.repeat(498)},de`, 'en'],
    [`${'x'.repeat(400)},de;q=0.1${' '.repeat(100)},fr`, 'de'],
    ['de ; q = 0.5 , fr;q=0.4', 'de'],
    ['de;q=1,fr;q=0.999', 'de'],
    ['de;q=0.5,fr;q=0.501', 'fr'],
    ['de;q=0.5,fr;q=0.5001', 'de'],
    ['de;q=0.,fr;q=0.1', 'fr'],
    ['de;q=1.,fr;q=0.1', 'de'],
    ['de-,fr;q=0.5', 'de'],
    ['de-1996-x,fr;q=0.5', 'de'],
    ['de x,fr;q=0.5', 'fr'],
    ['de;q=1x,fr;q=0.5', 'fr'],
    ['de;q=1 x,fr;q=0.5', 'fr'],
    ['de;xq=1,fr;q=0.5', 'fr'],
    ['de;qx=1,fr;q=0.5', 'fr'],
    ['de;q=x1,fr;q=0.5', 'fr'],
    ['x de,fr;q=0.5', 'fr'],
    // Weights above 1 are read as they stand, and one that is not given is 1.
    ['de;q=2,fr', 'de'],
    ['fr,de;q=2', 'de'],
    // Words of one letter and of eight are ranges like others, only that no one speaks them.
    ['x;q=0.9,de;q=0.1', 'de'],
    ['i-klingon,de;q=0.5', 'de'],
  ])('%j gets %s', (header, expected) => expect(chooseLanguage(header)).toBe(expected))
})
