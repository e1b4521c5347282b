import { describe, expect, test } from 'vitest'
import { secretFiles, secretIn } from '../../../shared/content/secret-files.ts'

const KEY = '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n'
const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'

describe('by name', () => {
  test.each([
    '.env',
    'app/.env.production',
    '.git/HEAD',
    'old/.git/config',
    '.npmrc',
    '.htpasswd',
    'admin/.htpasswd',
    '.aws/credentials',
    'home/.ssh/id_ed25519',
    'id_rsa',
    'server.pem',
    'tls.key',
    'store.p12',
    'dump.sql',
    'dump.sql.gz',
    'data.sqlite3',
    'site.bak',
    '.git-credentials',
    'terraform.tfstate',
  ])('%s is refused', (path) => expect(secretIn({ path, size: 10 })).toBeDefined())

  test.each([
    '.env.example',
    'index.html',
    'npmrc.html',
    'git/index.html',
    '.github/workflows/a.yml',
    'keys.html',
    'a.keynote',
    'blog/sql.html',
    'thumbs.dbx',
    '.well-known/security.txt',
    '__proto__',
  ])('%s is not', (path) => expect(secretIn({ path, size: 10 })).toBeUndefined())
})

describe('by content, where it is at hand', () => {
  test.each([
    ['ca.pem', CERTIFICATE, false],
    ['both.pem', CERTIFICATE + KEY, true],
    ['talk.key', 'PK\u0003\u0004', false],
    ['notes.txt', KEY, true],
    ['notes.txt', `\ufeff\n${KEY}`, true],
    ['guide.html', `<p>A key begins with ${KEY}`, false],
  ])('%s', (path, head, refused) => expect(secretIn({ path, size: 300, head }) !== undefined).toBe(refused))
})

test('a repository is one mistake, two are two', () => {
  const files = ['.git/HEAD', '.git/config', 'sub/.git/HEAD', 'index.html'].map((path) => ({ path, size: 1 }))
  expect(secretFiles(files).map(({ path }) => path)).toEqual(['.git/HEAD', 'sub/.git/HEAD'])
})

test('a hostile path costs no more than its length', () => {
  const path = `${'.git'.repeat(200)}/${'a/'.repeat(5000)}`
  expect(secretFiles(Array.from({ length: 2000 }, () => ({ path, size: 1 })))).toEqual([])
})
