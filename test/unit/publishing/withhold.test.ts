import { expect, test } from 'vitest'
import { siftSecrets } from '../../../control/drops/publishing/intake/withhold.ts'

const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
const KEY = '-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n'

const contents: Readonly<Record<string, string>> = { 'cert.pem': CERTIFICATE, 'key.pem': KEY, 'index.html': '<p>x' }
const files = Object.entries(contents).map(([path, content]) => ({ path, hash: path, size: content.length }))
const blobs = { read: async (hash: string) => Buffer.from(contents[hash] ?? '') }

test('a certificate is no key, and is published without a word', async () => {
  const sifted = await siftSecrets(blobs, files, 'withhold')
  expect(sifted.files.map(({ path }) => path)).toEqual(['cert.pem', 'index.html'])
  expect(sifted.blocked).toEqual([{ path: 'key.pem', what: 'a private key' }])
  expect(sifted.allowed).toEqual([])
})

test('what a publisher insisted on is published and told', async () => {
  const sifted = await siftSecrets(blobs, files, 'allow')
  expect(sifted.files).toBe(files)
  expect(sifted.blocked).toEqual([])
  expect(sifted.allowed).toEqual([{ path: 'key.pem', what: 'a private key' }])
})

test('a publisher who wants all or nothing gets nothing', async () => {
  await expect(siftSecrets(blobs, files, 'refuse')).rejects.toThrow(/key\.pem/)
})
