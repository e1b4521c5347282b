import { describe, expect, test } from 'vitest'
import { DEFAULT_BUNDLE_FILES } from '../../../shared/contracts/limits.ts'
import {
  fileKindOf,
  siteRootOf,
  unservedKindOf,
  uploadKindOf,
  type UploadKind,
} from '../../../shared/content/upload-kind.ts'

const CAP_BYTES = 1000
const account = { capBytes: CAP_BYTES, takes: 'anything' } as const
const stranger = { capBytes: CAP_BYTES, takes: 'page' } as const
const given = (paths: readonly string[], size = 1) => paths.map((path) => ({ path, size }))

describe('a file by itself', () => {
  test.each<[string, UploadKind]>([
    ['a.html', { kind: 'page', name: 'a.html', format: 'html' }],
    ['A.HTM', { kind: 'page', name: 'A.HTM', format: 'html' }],
    ['notes.md', { kind: 'page', name: 'notes.md', format: 'markdown' }],
    ['notes.markdown', { kind: 'page', name: 'notes.markdown', format: 'markdown' }],
    ['site.zip', { kind: 'archive', name: 'site.zip' }],
    ['cv.pdf', { kind: 'document', name: 'cv.pdf', shown: 'pdf' }],
    ['cat.JPEG', { kind: 'document', name: 'cat.JPEG', shown: 'image' }],
    ['film.mp4', { kind: 'document', name: 'film.mp4', shown: 'video' }],
    ['song.mp3', { kind: 'document', name: 'song.mp3', shown: 'sound' }],
    ['data.csv', { kind: 'document', name: 'data.csv', shown: 'text' }],
  ])('%s', (name, found) => {
    expect(uploadKindOf(given([name]), account)).toEqual(found)
    if (found.kind === 'page') expect(uploadKindOf(given([name]), stranger)).toEqual(found)
    else expect(() => uploadKindOf(given([name]), stranger)).toThrow('needs an account')
  })

  test.each(['tool.exe', 'README', '.env', '.html', 'style.css', 'a.html.exe', 'a.tar.gz'])('%s is refused', (name) => {
    expect(() => uploadKindOf(given([name]), account)).toThrow(`"${name}" cannot be published by itself`)
    expect(fileKindOf(name)).toBeUndefined()
  })

  test('an empty one is refused', () => {
    expect(() => uploadKindOf(given(['a.html'], 0), account)).toThrow('"a.html" is empty')
  })
})

describe('several files, or a folder', () => {
  test.each<[string, readonly string[], string]>([
    ['files with an index', ['index.html', 'a.css'], ''],
    ['a Markdown index', ['index.md', 'a.css'], ''],
    ['another Markdown index', ['index.markdown', 'a.png'], ''],
    ['Markdown first', ['a.md', 'index.html'], ''],
    ['a zip first', ['a.zip', 'index.html'], ''],
    ['a folder', ['site/index.html', 'site/css/a.css'], 'site/'],
    ['a folder with one page', ['site/index.html'], 'site/'],
    ['a folder and what a system adds', ['site/.DS_Store', 'site/index.html', '__MACOSX/x'], 'site/'],
    ['a folder beside an index', ['index.html', 'img/a.png'], ''],
    ['an empty file among others', ['index.html', 'empty.txt'], ''],
  ])('%s', (_what, paths, root) => {
    expect(uploadKindOf(given(paths), account)).toEqual({ kind: 'site', root })
    expect(() => uploadKindOf(given(paths), stranger)).toThrow('needs an account')
  })

  test.each<[string, readonly string[], RegExp]>([
    ['no landing page', ['a.html', 'b.html'], /no index.html at its root\. Add one/],
    ['one page among others', ['a.html', 'a.css'], /To publish "a.html" by itself/],
    ['a folder with one page of another name', ['site/a.md'], /To publish "site\/a.md" by itself/],
    ['a page in a folder', ['x/a.css', 'y/z/index.html', 'y/index.html'], /there is one in "y\/"/],
    ['a misspelt one', ['Index.html', 'a.css'], /has "Index.html" but no index.html/],
    ['a misspelt ending', ['index.htm', 'a.css'], /has "index.htm" but no index.html/],
    ['two zips', ['a.zip', 'b.zip'], /no index.html/],
    ['nothing', [], /no file in this upload/],
    ['only what a system adds', ['.DS_Store', 'Thumbs.db'], /no file in this upload/],
  ])('%s is refused', (_what, paths, words) => {
    expect(() => uploadKindOf(given(paths), account)).toThrow(words)
  })

  test('more files than a bundle holds are refused', () => {
    const paths = ['index.html', ...Array.from({ length: DEFAULT_BUNDLE_FILES }, (_, index) => `${index}.txt`)]
    expect(() => uploadKindOf(given(paths, 0), account)).toThrow(`at most ${DEFAULT_BUNDLE_FILES} files`)
    expect(uploadKindOf(given(paths.slice(1).with(0, 'index.html'), 0), account).kind).toBe('site')
  })

  test('without an account the words say what it is', () => {
    expect(() => uploadKindOf(given(['x/index.html']), stranger)).toThrow('A folder needs an account')
    expect(() => uploadKindOf(given(['a.html', 'b.html']), stranger)).toThrow('A site of 2 files needs an account')
  })
})

test.each([
  [['index.html', 'a.css'], CAP_BYTES / 2, true],
  [['index.html', 'a.css'], CAP_BYTES / 2 + 1, false],
  [['a.md'], CAP_BYTES, true],
  [['a.md'], CAP_BYTES + 1, false],
  [['a.zip'], CAP_BYTES, true],
  [['a.zip'], CAP_BYTES + 1, false],
])('%j of %i bytes each: %s', (paths, size, fits) => {
  const decide = () => uploadKindOf(given(paths, size), account)
  if (fits) expect(decide).not.toThrow()
  else expect(decide).toThrow(/larger than 0.001 MB/)
})

test('a folder without a landing page is not unwrapped', () => {
  expect(siteRootOf(['x/a.html', 'x/b.html'])).toBe('')
  expect(siteRootOf([])).toBe('')
})

test.each([
  ['.DS_Store', '.DS_Store'],
  ['a/b/Thumbs.db', 'Thumbs.db'],
  ['a/desktop.ini', 'desktop.ini'],
  ['__MACOSX/a/._b', '__MACOSX/'],
  ['.dropway/x', '.dropway/'],
  ['.dropway', '.dropway/'],
  ['.well-known/acme-challenge/token', '.well-known/acme-challenge/'],
  ['.well-known/security.txt', undefined],
  ['.dropway.json', undefined],
  ['a/.dropway/x', undefined],
  ['a/__MACOSX/x', undefined],
  ['index.html', undefined],
])('no visitor can ask for %s: %s', (path, kind) => expect(unservedKindOf(path)).toBe(kind))
