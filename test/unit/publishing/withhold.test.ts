import { expect, test } from 'vitest'
import { keyIn } from '../../../shared/content/private-key.ts'
import { siftSecrets } from '../../../control/drops/publishing/intake/withhold.ts'

const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
const KEY = '-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n'

const contents: Readonly<Record<string, string>> = { 'cert.pem': CERTIFICATE, 'key.pem': KEY, 'index.html': '<p>x' }
const files = Object.entries(contents).map(([path, content]) => ({ path, hash: path, size: content.length }))
const keyOf = ({ hash }: { hash: string }) => keyIn(contents[hash] ?? '')

test('a certificate is no key, and is published without a word', () => {
  const sifted = siftSecrets(files, keyOf, 'withhold')
  expect(sifted.files.map(({ path }) => path)).toEqual(['cert.pem', 'index.html'])
  expect(sifted.blocked).toEqual([{ path: 'key.pem', what: 'a private key' }])
  expect(sifted.allowed).toEqual([])
})

test('every file that is kept back is known, and a hundred of them are told', () => {
  const secrets = Array.from({ length: 120 }, (_, at) => ({ path: `${at}.pem`, hash: `${at}`, size: 1 }))
  const sifted = siftSecrets([...secrets, ...files], ({ path }) => (path.endsWith('.pem') ? 'key' : 'none'), 'withhold')
  expect(sifted.files.map(({ path }) => path)).toEqual(['index.html'])
  expect(sifted.withheld.paths).toHaveLength(122)
  expect(new Set(sifted.withheld.contents)).toEqual(new Set([...secrets, ...files.slice(0, 2)].map(({ hash }) => hash)))
  expect(sifted.blocked).toHaveLength(100)
})

test('what a publisher insisted on is published and told', () => {
  const sifted = siftSecrets(files, keyOf, 'allow')
  expect(sifted.files).toBe(files)
  expect(sifted.blocked).toEqual([])
  expect(sifted.allowed).toEqual([{ path: 'key.pem', what: 'a private key' }])
})

test('a publisher who wants all or nothing gets nothing', () => {
  expect(() => siftSecrets(files, keyOf, 'refuse')).toThrow(/key\.pem/)
})

test('a site whose landing page is a secret has nothing left to publish; it goes by the name that was sent', () => {
  const source = { path: 'notes.md', hash: 'a', size: 1 }
  const landing = { path: 'index.html', hash: 'b', size: 1, source }
  expect(() => siftSecrets([landing], () => 'whole key', 'withhold')).toThrow(/notes\.md/)
})
