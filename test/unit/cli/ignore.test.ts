import { expect, test } from 'vitest'
import { parseIgnore } from '../../../cli/content/ignore/ignore.ts'

/** Pattern, path, whether it is a folder, whether it stays at home. */
const table: [string, string, boolean, boolean][] = [
  ['', 'index.html', false, false],
  ['', '.git', true, true],
  ['', 'node_modules', true, true],
  ['', 'docs/node_modules', true, true],
  ['', '.env', false, true],
  ['', 'sub/.env.local', false, true],
  ['', '.environment', false, false],
  ['', '.dropway.json', false, true],
  ['', 'sub/.dropway.json', false, false],
  ['', '.well-known', true, false],
  ['*.map', 'app.js.map', false, true],
  ['*.map', 'assets/app.js.map', false, true],
  ['*.map', 'app.mapper', false, false],
  ['/drafts', 'drafts', true, true],
  ['/drafts', 'blog/drafts', true, false],
  ['drafts/', 'drafts', false, false],
  ['drafts/', 'blog/drafts', true, true],
  ['a/*.txt', 'a/x.txt', false, true],
  ['a/*.txt', 'a/b/x.txt', false, false],
  ['a/**/x.txt', 'a/x.txt', false, true],
  ['a/**/x.txt', 'a/b/c/x.txt', false, true],
  ['a/**', 'a/b/c', false, true],
  ['**/cache', 'x/y/cache', true, true],
  ['file?.js', 'file1.js', false, true],
  ['file[0-9].js', 'file1.js', false, true],
  ['file[!0-9].js', 'file1.js', false, false],
  ['# *.html', 'index.html', false, false],
  ['*.html\n!index.html', 'index.html', false, false],
  ['*.html\n!index.html', 'about.html', false, true],
  ['!.env', '.env', false, false],
  ['a.b', 'axb', false, false],
  ['\\#file', '#file', false, true],
]

test.each(table)('%j against %s (folder: %s): %s', (pattern, path, isFolder, expected) => {
  expect(parseIgnore(pattern).leavesOut(path, isFolder)).toBe(expected)
})

test.each([
  ['.git/config', '.git', true, false],
  ['.git/config', '.git/config', false, false],
  ['.git/config', '.git/HEAD', false, true],
  ['.git/', '.git/HEAD', false, false],
  ['*.pem', 'certs/ca.pem', false, false],
])('--include %s: %s (folder: %s) stays at home: %s', (include, path, isFolder, expected) => {
  expect(parseIgnore('', [include]).leavesOut(path, isFolder)).toBe(expected)
})

test.each([
  ['', '.npmrc', '.npmrc', true],
  ['', 'keys/', 'keys/tls.key', true],
  ['', '*.pem', 'certs/ca.pem', true],
  ['', 'other', '.npmrc', false],
  ['!.htpasswd', 'other', '.htpasswd', false],
  ['.htpasswd', 'other', '.htpasswd', false],
])('.dropwayignore %j and --include %s ask for %s: %s', (text, include, path, expected) => {
  expect(parseIgnore(text, [include]).wants(path)).toBe(expected)
})
