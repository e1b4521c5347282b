/** Where the parts of a long manifest end: bounded whatever the names are, and far from a change as they were. */
import { describe, expect, test } from 'vitest'
import { decodePart, encodePart, filesByPart } from '../../../shared/content/manifest-parts.ts'
import type { ManifestFile, ManifestFiles } from '../../../shared/contracts/manifest.ts'

const FILE: ManifestFile = { hash: 'a'.repeat(64), size: 1, type: 'text/plain' }

function filesOf(names: readonly string[]): ManifestFiles {
  return names.map((name) => [name, FILE])
}

/** Sorted names of a site, as generators and people give them; the end of a name is all that differs in some. */
const sites: Readonly<Record<string, (index: number) => string>> = {
  'pages with an ending': (index) => `docs/page-${String(index).padStart(5, '0')}.html`,
  'articles without one': (index) => `wiki/Article_${String(index).padStart(5, '0')}`,
  'folders of pages': (index) => `${String(index).padStart(6, '0')}/index.html`,
  letters: (index) => `a${'x'.repeat(index % 90)}${String(index).padStart(5, '0')}`,
}

function namesOf(nameOf: (index: number) => string): string[] {
  return Array.from({ length: 10_000 }, (_, index) => nameOf(index)).toSorted()
}

describe.each(Object.entries(sites))('%s', (_, nameOf) => {
  const files = filesOf(namesOf(nameOf))

  test('parts are the files in their order, each of some hundred', () => {
    const parts = [...filesByPart(files)]
    expect(parts.flat()).toEqual(files)
    const lengths = parts.slice(0, -1).map(({ length }) => length)
    expect(Math.min(...lengths)).toBeGreaterThanOrEqual(64)
    expect(Math.max(...lengths)).toBeLessThanOrEqual(1024)
    expect(parts.length).toBeGreaterThan(10_000 / 600)
    expect(parts.length).toBeLessThan(10_000 / 200)
    // Names end parts, and hardly ever their number does.
    expect(lengths.filter((length) => length === 1024).length).toBeLessThanOrEqual(2)
  })

  test.each([
    ['a file less', (all: ManifestFiles) => all.toSpliced(5000, 1)],
    ['a file more', (all: ManifestFiles) => all.toSpliced(5000, 0, [`${all[4999]![0]}b`, FILE])],
    ['another first file', (all: ManifestFiles) => all.with(0, ['!', FILE])],
    ['another last file', (all: ManifestFiles) => all.with(-1, ['~', FILE])],
    ['a file with other bytes', (all: ManifestFiles) => all.with(7000, [all[7000]![0], { ...FILE, size: 2 }])],
  ])('%s changes few parts', (_each, change) => {
    const before = new Set([...filesByPart(files)].map((part) => encodePart(part).toString()))
    const changed = [...filesByPart(change(files))].filter((part) => !before.has(encodePart(part).toString()))
    expect(changed.length).toBeLessThanOrEqual(3)
  })
})

test('no files are no part', () => {
  expect([...filesByPart([])]).toEqual([])
})

/** Names of which each ends a part, or none does, as a publisher could choose them. */
function chosen(count: number, isWanted: (isEnd: boolean) => boolean): string[] {
  const names: string[] = []
  for (let number = 0; names.length < count; number++) {
    const name = `n${number}`
    // Sixty-four times the same name: the last of them ends the part if that name does.
    const [first] = filesByPart(filesOf(Array.from({ length: 80 }, () => name)))
    if (isWanted(first!.length === 64)) names.push(name)
  }
  return names
}

test.each([
  ['each of which ends a part', (isEnd: boolean) => isEnd, 64],
  ['none of which ends a part', (isEnd: boolean) => !isEnd, 1024],
] as const)('names %s', (_, isWanted, length) => {
  const names = chosen(16, isWanted)
  const files = filesOf(Array.from({ length: 2048 }, (_each, index) => names[index % names.length]!))
  expect(new Set([...filesByPart(files)].map((part) => part.length))).toEqual(new Set([length]))
})

test('a part is read as it was written; one with an entry that is no file is refused', () => {
  const odd: ManifestFiles = [['__proto__', { ...FILE, source: { path: 'x.md', hash: 'b'.repeat(64), size: 3 } }]]
  expect(decodePart(encodePart(odd))).toEqual(odd)
  for (const text of ['{}', '["a"]', '["a",{"hash":"x","size":1,"type":"t"}]', '[', '[1,{}]', ','])
    expect(() => decodePart(Buffer.from(text)), text).toThrow()
})
