import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { bundleManifest, ENTRY_POINT } from '../../../control/operations/listing/bundle.ts'
import { clientPackage, listedTools, sampleCard, sampleLlmsTxt } from '../../../control/operations/listing/listed.ts'
import {
  cardProblems,
  llmsTxtProblems,
  pageProblems,
  serverJsonProblems,
  skillProblems,
  toolProblems,
} from '../../../control/operations/listing/rules.ts'

const read = (file: string): string => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8')
const server = JSON.parse(read('server.json')) as Record<string, unknown>
const client = clientPackage()

describe('server.json', () => {
  test('is what the registry takes, and names the package that names it', () => {
    expect(serverJsonProblems(server, client)).toEqual([])
  })
  test.each<[string, Record<string, unknown>]>([
    ['a name without a slash', { name: 'dropway' }],
    ['two slashes', { name: 'a.b/c/d' }],
    ['a long description', { description: 'x'.repeat(101) }],
    ['a range of versions', { version: '^1.0.0' }],
    ['latest', { version: 'latest' }],
    ['a field that nobody knows', { homepage: 'https://a.test' }],
    ['another schema', { $schema: 'https://a.test/schema.json' }],
    ['plain http', { remotes: [{ type: 'streamable-http', url: 'http://a.test/mcp' }] }],
    ['no way to reach it', { remotes: [], packages: [] }],
    ['another package', { packages: [] }],
    ['another version than the package', { version: '9.9.9' }],
  ])('refused: %s', (_what, change) => {
    expect(serverJsonProblems({ ...server, ...change }, client)).not.toEqual([])
  })
  test('refused: a package that names another server', () => {
    expect(serverJsonProblems(server, { ...client, mcpName: 'a.b/c' })).toEqual([
      `cli/package.json: mcpName must be "${String(server['name'])}"`,
    ])
  })
})

describe('tools', () => {
  test('have what the directories ask for', () => {
    expect(toolProblems(listedTools)).toEqual([])
  })
  const tool = listedTools[0]!
  test.each([
    ['no title', { title: undefined }],
    ['no words', { description: 'x' }],
    ['a name with a space', { name: 'a b' }],
    ['two hints of three', { annotations: { readOnlyHint: true, destructiveHint: false } }],
    ['hints that contradict', { annotations: { readOnlyHint: true, destructiveHint: true, openWorldHint: false } }],
  ])('refused: %s', (_what, change) => {
    expect(toolProblems([{ ...tool, ...change }])).toHaveLength(1)
  })
  test('refused: one name twice', () => {
    expect(toolProblems([tool, tool])).toEqual(['two tools have one name'])
  })
})

test('the card loads nothing and allows only drops', () => {
  const card = sampleCard()
  expect(cardProblems(card)).toEqual([])
  expect(card.csp).toEqual({ connectDomains: [], resourceDomains: [], frameDomains: ['https://*.dropway.example'] })
  expect(cardProblems({ ...card, csp: { frameDomains: ['*'] } })).toEqual(['the card allows "*"'])
  expect(cardProblems({ ...card, text: '<script src="https://a.test/x.js"></script>' })).toEqual([
    'the card loads something',
  ])
})

test('the skill has its name and says when to use it', () => {
  const text = read('skills/dropway/SKILL.md')
  expect(skillProblems('dropway', text)).toEqual([])
  expect(skillProblems('other', text)).toHaveLength(1)
  expect(skillProblems('dropway', '# No front matter')).toHaveLength(1)
  expect(skillProblems('dropway', '---\nname: dropway\ndescription: <b>\n---\n')).toHaveLength(1)
})

test('llms.txt has a title, what it is about, and links', () => {
  expect(llmsTxtProblems(sampleLlmsTxt())).toEqual([])
  expect(llmsTxtProblems('No title\n\n## A\n\n- [x](https://a.test)')).not.toEqual([])
  expect(llmsTxtProblems('# A\n\n## B\n\n- x')).toEqual(['llms.txt: no link: - x'])
})

test('privacy, terms and help are there', () => {
  expect(pageProblems(['/privacy', '/terms'])).toEqual(['there is no page /help'])
})

test('the bundle starts the client with what its person has filled in', () => {
  const manifest = bundleManifest(client, { description: 'x', tools: listedTools })
  expect(manifest).toMatchObject({
    manifest_version: '0.3',
    name: 'dropway',
    version: client.version,
    server: { type: 'node', entry_point: ENTRY_POINT },
    user_config: { token: { sensitive: true, required: true } },
  })
  expect(JSON.stringify(manifest)).not.toContain('dw_')
})
