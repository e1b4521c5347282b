import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createCertificateIndex, type CertificateIndex } from '../../../certs/certificates.ts'
import { openLocalCa, type LocalCa } from '../../../certs/local/local-ca.ts'
import { systemClock } from '../../../shared/running/clock.ts'

let folder: string
let ca: LocalCa
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'dropway-index-'))
  ca = openLocalCa(folder, systemClock)
})
afterAll(() => rmSync(folder, { recursive: true }))

function indexWith(...names: string[]): CertificateIndex {
  const index = createCertificateIndex({
    fallback: ca.mint(['dropway.example', '*.sites.example']),
  })
  for (const name of names) index.set(name, ca.mint([name]))
  return index
}

test('the exact name comes before the wildcard, the wildcard before the default, in any case', () => {
  const index = indexWith('a.example.com', '*.example.com')
  const exact = index.contextFor('a.example.com')
  const wildcard = index.contextFor('b.example.com')
  const fallback = index.contextFor('unknown.test')
  expect(new Set([exact, wildcard, fallback]).size).toBe(3)
  expect(index.contextFor('A.Example.COM')).toBe(exact)
  expect(index.contextFor('c.example.com')).toBe(wildcard)
  expect(index.contextFor('x.y.example.com')).toBe(fallback)
  expect(index.contextFor(undefined)).toBe(fallback)
  expect(index.contextFor('__proto__')).toBe(fallback)
})

test('a host is covered only by the certificate that its handshake got', () => {
  const index = indexWith('a.example.com')
  expect(index.coversHost('a.example.com', 'a.example.com')).toBe(true)
  expect(index.coversHost('a.example.com', 'one.sites.example')).toBe(false)
  expect(index.coversHost('one.sites.example', 'two.sites.example')).toBe(true)
  expect(index.coversHost('one.sites.example', 'x.two.sites.example')).toBe(false)
  expect(index.coversHost(undefined, 'dropway.example')).toBe(true)
  expect(index.coversHost(false, 'a.example.com')).toBe(false)
  expect(index.coversHost('unknown.test', 'unknown.test')).toBe(false)
})

test('set swaps a certificate, remove gives it up, a broken bundle changes nothing', () => {
  const index = indexWith('a.example.com')
  const first = index.contextFor('a.example.com')
  index.set('a.example.com', ca.mint(['a.example.com']))
  const second = index.contextFor('a.example.com')
  expect(second).not.toBe(first)
  expect(() => index.set('a.example.com', { cert: 'nonsense', key: 'nonsense' })).toThrow()
  expect(index.contextFor('a.example.com')).toBe(second)
  index.remove('a.example.com')
  expect(index.contextFor('a.example.com')).toBe(index.contextFor(undefined))
})

test('bundles of the replica are read once, and again after forget', () => {
  const reads: string[] = []
  const bundle = ca.mint(['a.example.com'])
  const index = createCertificateIndex({
    fallback: ca.mint(['dropway.example']),
    lookup: (name) => {
      reads.push(name)
      return name === 'a.example.com' ? bundle : undefined
    },
  })
  const context = index.contextFor('a.example.com')
  expect(index.contextFor('a.example.com')).toBe(context)
  expect(reads).toEqual(['a.example.com'])
  index.forget('a.example.com')
  expect(index.contextFor('a.example.com')).not.toBe(context)
})

test('a bundle that cannot be used falls back and is reported', () => {
  const bad: string[] = []
  const index = createCertificateIndex({
    fallback: ca.mint(['dropway.example']),
    lookup: () => ({ cert: 'nonsense', key: 'nonsense' }),
    onBadBundle: (name) => bad.push(name),
  })
  expect(index.contextFor('a.test')).toBe(index.contextFor(undefined))
  expect(bad).toContain('a.test')
})

test('contexts stay bounded while every certificate stays reachable', () => {
  const index = createCertificateIndex({ fallback: ca.mint(['dropway.example']), maxContexts: 2 })
  const bundle = ca.mint(['a.test', 'b.test', 'c.test'])
  for (const name of ['a.test', 'b.test', 'c.test']) index.set(name, bundle)
  const first = index.contextFor('a.test')
  index.contextFor('b.test')
  index.contextFor('c.test')
  expect(index.contextFor('a.test')).not.toBe(first)
  expect(index.coversHost('a.test', 'a.test')).toBe(true)
})

test('ten thousand made-up names ask for nothing, and leave room and real certificates alone', () => {
  const asked = new Set<string>()
  const minted: string[] = []
  const index = createCertificateIndex({
    fallback: ca.mint(['dropway.example']),
    maxContexts: 100,
    lookup: (name) => void asked.add(name),
    mint: (name) => (name.endsWith('.localhost') ? (minted.push(name), ca.mint([name])) : undefined),
  })
  index.set('real.test', ca.mint(['real.test']))
  const real = index.contextFor('real.test')
  const fallback = index.contextFor(undefined)
  const unknown = Array.from({ length: 10_000 }, (_, n) => index.contextFor(`${n}.${(n * 7919) % 997}.unknown`))
  expect(unknown.every((context) => context === fallback)).toBe(true)
  for (let n = 0; n < 300; n++) index.contextFor(`made-up-${n}.localhost`)
  expect(index.contextFor('real.test')).toBe(real)
  expect(minted).toHaveLength(300)
  // Only the local replica was asked, for the name and its wildcard.
  expect([...asked].every((name) => /unknown$|localhost$/.test(name))).toBe(true)
})
