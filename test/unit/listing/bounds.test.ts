/** Where the rules of registries and directories end: what is just taken, and what just is not. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { clientPackage, listedTools, sampleCard } from '../../../control/operations/listing/listed.ts'
import {
  cardProblems,
  llmsTxtProblems,
  serverJsonProblems,
  skillProblems,
  toolProblems,
} from '../../../control/operations/listing/rules.ts'

const server = JSON.parse(readFileSync(new URL('../../../server.json', import.meta.url), 'utf8')) as Record<
  string,
  unknown
>
const [npm] = server['packages'] as Record<string, unknown>[]

/** Judged with a client of that name and version, so that only the value itself can be wrong. */
function judge(change: Record<string, unknown>): string[] {
  const whole = { ...server, ...change } as { name: string; version: string }
  const client = { ...clientPackage(), mcpName: whole.name, version: whole.version }
  return serverJsonProblems({ ...whole, packages: [{ ...npm, version: whole.version }] }, client)
}

describe('server.json', () => {
  test.each([
    ['a.b/c', true],
    ['a/b', true],
    ['A-1.b/C_d-e.f', true],
    ['ab', false],
    ['/bc', false],
    ['ab/', false],
    ['a b/c', false],
    ['a/b c', false],
    [' a/b', false],
    ['a/b!', false],
    [`a/${'b'.repeat(198)}`, true],
    [`a/${'b'.repeat(199)}`, false],
  ])('the name %s: %s', (name, isTaken) => {
    expect(judge({ name }).length === 0).toBe(isTaken)
  })

  test.each([
    ['1.2.3', true],
    ['10.20.30', true],
    ['1.2.3-rc.1', true],
    ['1.2.3+build', true],
    ['1.2.3-alpha-2', true],
    ['v1.2.3', false],
    ['1.2', false],
    ['.2.3', false],
    ['1..3', false],
    ['1.2.', false],
    ['1.2.3-', false],
    ['1.2.3-a!', false],
    ['1.2.3 ', false],
    ['1.2.3_4', false],
    [`1.2.3-${'a'.repeat(249)}`, true],
    [`1.2.3-${'a'.repeat(250)}`, false],
  ])('the version %s: %s', (version, isTaken) => {
    expect(judge({ version }).length === 0).toBe(isTaken)
  })

  test.each([
    ['image/png', true],
    ['image/jpeg', true],
    ['image/jpg', true],
    ['image/svg+xml', true],
    ['image/webp', true],
    ['', false],
  ])('an icon of the type %s: %s', (mimeType, isTaken) => {
    expect(judge({ icons: [{ src: 'https://a.test/i', mimeType }] }).length === 0).toBe(isTaken)
  })

  test.each([
    ['1x1', true],
    ['96x48', true],
    ['any', true],
    ['x48', false],
    ['48x', false],
    ['big 48x48', false],
    ['48x48px', false],
    ['many', false],
  ])('an icon of the size %s: %s', (size, isTaken) => {
    expect(judge({ icons: [{ src: 'https://a.test/i', sizes: [size] }] }).length === 0).toBe(isTaken)
  })

  test.each([
    [{ src: `https://a.test/${'i'.repeat(240)}` }, true],
    [{ src: `https://a.test/${'i'.repeat(241)}` }, false],
    [{ src: 'xhttps://a.test/i' }, false],
    [{ src: 'https+x://a.test/i' }, false],
    [{ src: 'https://a.test/i', theme: 'light' }, true],
  ])('the icon %j: %s', (icon, isTaken) => {
    expect(judge({ icons: [icon] }).length === 0).toBe(isTaken)
  })

  test.each(['xhttps://a.test/mcp', 'https+x://a.test/mcp'])('no remote at %s', (url) => {
    expect(judge({ remotes: [{ type: 'sse', url }] })).not.toEqual([])
  })
})

describe('tools', () => {
  const [tool] = listedTools
  test.each([
    ['a', true],
    ['a'.repeat(64), true],
    ['a'.repeat(65), false],
    ['', false],
  ])('the name %s: %s', (name, isTaken) => {
    expect(toolProblems([{ ...tool!, name }]).length === 0).toBe(isTaken)
  })

  test.each([
    [19, false],
    [20, true],
    [1024, true],
    [1025, false],
  ])('a description of %i characters: %s', (length, isTaken) => {
    expect(toolProblems([{ ...tool!, description: 'x'.repeat(length) }]).length === 0).toBe(isTaken)
  })

  test('none is no description', () => {
    expect(toolProblems([{ ...tool!, description: undefined }])).toEqual([`${tool!.name}: does not say what it does`])
  })
})

describe('a card', () => {
  test.each([
    ['https://a.test', true],
    ['https://*.a.test', true],
    ['https://a.test:8443', true],
    ['https://*.a.test:84', true],
    ['x https://a.test', false],
    ['https://', false],
    ['https://a.test:', false],
    ['https://a.test:x', false],
    ['https://a.test/path', false],
    ['http://a.test', false],
  ])('may allow %s: %s', (origin, isTaken) => {
    expect(cardProblems({ ...sampleCard(), csp: { frameDomains: [origin] } }).length === 0).toBe(isTaken)
  })

  test.each([
    ['<img src=//a.test/x>', false],
    ["<img src='http://a.test/x'>", false],
    ['<link HREF="https://a.test/x">', false],
    ['<a href="//a.test">', false],
    ['<img src="data:x">', true],
    ['<img data="//a.test">', true],
    ['<b xsrc="//a.test">', true],
  ])('may hold %s: %s', (text, isTaken) => {
    expect(cardProblems({ ...sampleCard(), text }).length === 0).toBe(isTaken)
  })
})

describe('a skill', () => {
  const skill = (name: string, description: string): string =>
    `---\nname: ${name}\ndescription: ${description}\n---\n# x\n`
  test.each([
    ['a', true],
    ['a1', true],
    ['a-b', true],
    [`a${'-'.repeat(62)}b`, true],
    [`a${'-'.repeat(63)}b`, false],
    ['-ab', false],
    ['ab-', false],
    ['Ab', false],
  ])('is called %s: %s', (name, isTaken) => {
    expect(skillProblems(name, skill(name, 'Says when to use it')).length === 0).toBe(isTaken)
  })

  test.each([
    ['', false],
    ['x', true],
    ['when: it has a colon', true],
    ['description: twice', true],
    ['x'.repeat(1024), true],
    ['x'.repeat(1025), false],
  ])('is described by %s: %s', (description, isTaken) => {
    expect(skillProblems('a', skill('a', description)).length === 0).toBe(isTaken)
  })

  test('its front matter comes first, and names both', () => {
    expect(skillProblems('a', '---\nlicense: MIT\ndescription: x\nname: a\n---\n')).toEqual([])
    expect(skillProblems('a', `x\n${skill('a', 'x')}`)).toEqual(['skills/a: has no front matter'])
    expect(skillProblems('a', '---\nother: x\n---\n')).toEqual([
      'skills/a: its name must be "a"',
      'skills/a: a description has 1 to 1024 characters',
    ])
  })
})

describe('llms.txt', () => {
  test.each([
    ['- [x](https://a.test)', true],
    ['- [x](https://a.test/y): about it', true],
    [' - [x](https://a.test)', false],
    ['- [](https://a.test)', false],
    ['- [x](https://)', false],
    ['- [x](https://a.test): ', false],
    ['- [x](https://a.test) and more', false],
    ['- [x](http://a.test)', false],
  ])('lists %s: %s', (line, isTaken) => {
    expect(llmsTxtProblems(`# A\n\n## B\n\n${line}`).length === 0).toBe(isTaken)
  })

  test('begins with its only title, and lists something', () => {
    const list = '## B\n- [x](https://a.test)'
    expect(llmsTxtProblems(`x # A\n${list}`)).toContain('llms.txt: begins with no title')
    expect(llmsTxtProblems(`# A\n# C\n${list}`)).toEqual(['llms.txt: has more than one title'])
    expect(llmsTxtProblems('# A\n\nwords')).toEqual(['llms.txt: lists nothing'])
    expect(llmsTxtProblems('')).toContain('llms.txt: begins with no title')
  })
})
