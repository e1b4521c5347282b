import { describe, expect, test } from 'vitest'
import { generateKeyPairSync } from 'node:crypto'
import { createKeySearch, keyInBytes } from '../../../shared/content/key-text.ts'
import { keyIn, type KeyTrace } from '../../../shared/content/private-key.ts'
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
    '.GIT/config',
    'sub/.Git/HEAD',
    '.git',
    '.NPMRC',
    '.Aws/Credentials',
    'ID_RSA',
    '.envrc',
    '.ENV',
    '.env-production',
    '.env_local',
    '.env~',
    'api/.env.local',
    'config/master.key',
    'terraform.tfvars',
    'prod.auto.tfvars',
    'prod.tfvars.json',
    '_netrc',
    '.bash_history',
    '.gnupg/secring.gpg',
    '.dev.vars',
  ])('%s is refused', (path) => expect(secretIn({ path, size: 10 })).toBeDefined())

  test.each([
    '.env.example',
    'index.html',
    'npmrc.html',
    '.env.example',
    '.env-sample',
    '.env.local.template',
    '.ENV.EXAMPLE',
    '.envrc.example',
    '.env.dist',
    '.environment',
    '.gitignore',
    '.github/FUNDING.yml',
    'gitmaster.keys',
    'tfvars.html',
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

const pem = (type: 'pkcs1' | 'pkcs8', modulusLength = 1024): string =>
  generateKeyPairSync('rsa', { modulusLength }).privateKey.export({ type, format: 'pem' }) as string
const RSA = pem('pkcs1')
const ED25519 = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
const SEALED = `-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\n${'QUJD'.repeat(80)}\n-----END`

describe('by content, whatever the name', () => {
  test.each([
    ['ca.pem', CERTIFICATE, false],
    ['both.pem', CERTIFICATE + KEY, true],
    ['talk.key', 'PK\u0003\u0004', false],
    ['notes.txt', KEY, true],
    ['notes.txt', `\ufeff\n${KEY}`, true],
    ['notes.txt', `Dear all,\n\n${RSA}\nYours`, true],
    ['photo.png', ED25519, true],
    ['data.json', JSON.stringify({ type: 'service_account', private_key: RSA }), true],
    ['app.js', `const key = ${JSON.stringify(ED25519)}`, true],
    ['app.js', `const key = '${RSA.trim().split('\n').join("\\n' +\n  '")}'`, true],
    ['deploy.yml', `key: |\n  ${RSA.replaceAll('\n', '\n  ')}`, true],
    ['vpn.ovpn', `<key>\n${RSA}</key>`, true],
    ['sealed.txt', SEALED, true],
    ['windows.txt', RSA.replaceAll('\n', '\r\n'), true],
    ['guide.html', `<p>A key begins with ${KEY}`, false],
    ['guide.html', `<pre>${RSA}</pre>`, true],
    ['guide.md', `\`\`\`\n${ED25519}\`\`\``, true],
    ['guide.md', '```\n-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n```', false],
    ['cert.txt', CERTIFICATE, false],
    ['cert.txt', '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----', false],
    ['ssl.rst.txt', '   -----BEGIN RSA PRIVATE KEY-----\n   ... (private key in base64) ...\n   -----END', false],
    ['manual.txt', 'between -----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY-----', false],
    ['manual.txt', 'It begins with -----BEGIN PRIVATE KEY-----, then lines of base64, and ends.', false],
    ['lib.js', 'pem="-----BEGIN PRIVATE KEY-----\\n"+base64+"\\n-----END PRIVATE KEY-----"', false],
    ['lib.js', 'pem=`-----BEGIN PRIVATE KEY-----\n${body}\n-----END PRIVATE KEY-----`', false],
    ['lib.js', "types=['-----BEGIN PRIVATE KEY-----','-----BEGIN EC PRIVATE KEY-----']", false],
    ['movie.bin', `\u0000\u0001${RSA}`, false],
  ])('%s', (path, content, isRefused) => {
    const bytes = Buffer.from(content)
    const key = keyInBytes(bytes)
    expect(secretIn({ path, size: bytes.length, key }) !== undefined).toBe(isRefused)
  })

  test('text of UTF-16 is text', () => {
    expect(keyInBytes(Buffer.from(`\ufeff${RSA}`, 'utf16le'))).toBe<KeyTrace>('whole key')
  })

  test.each([1, 7, 63, 1000, 65_536])('a key is found in pieces of %i bytes as in one', (size) => {
    const search = createKeySearch()
    const bytes = Buffer.from(`${'a line\n'.repeat(400)}${RSA}${'more\n'.repeat(9000)}${ED25519}`)
    for (let at = 0; at < bytes.length; at += size) search.add(bytes.subarray(at, at + size))
    expect(search.found()).toBe<KeyTrace>('whole key')
  })

  test('nothing is found in pieces where nothing is', () => {
    const search = createKeySearch()
    for (let piece = 0; piece < 100; piece++) search.add(Buffer.from(CERTIFICATE.repeat(10)))
    expect(search.found()).toBe<KeyTrace>('none')
    expect(keyIn(CERTIFICATE)).toBe<KeyTrace>('none')
  })
})

test('a repository is one mistake, two are two', () => {
  const files = ['.git/HEAD', '.git/config', 'sub/.git/HEAD', 'index.html'].map((path) => ({ path, size: 1 }))
  expect(secretFiles(files).map(({ path }) => path)).toEqual(['.git/HEAD', 'sub/.git/HEAD'])
})

test('a hostile path costs no more than its length', () => {
  const path = `${'.git'.repeat(200)}/${'a/'.repeat(5000)}`
  expect(secretFiles(Array.from({ length: 2000 }, () => ({ path, size: 1 })))).toEqual([])
})
