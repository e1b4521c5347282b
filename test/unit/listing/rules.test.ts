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
    ['an icon over plain http', { icons: [{ src: 'http://a.test/icon.png' }] }],
    ['an icon of another type', { icons: [{ src: 'https://a.test/i', mimeType: 'image/gif' }] }],
    ['an icon without a size', { icons: [{ src: 'https://a.test/i', sizes: ['large'] }] }],
    ['an icon for no theme', { icons: [{ src: 'https://a.test/i', theme: 'blue' }] }],
    ['an icon whose address is too long', { icons: [{ src: `https://a.test/${'i'.repeat(250)}` }] }],
    ['plain http', { remotes: [{ type: 'streamable-http', url: 'http://a.test/mcp' }] }],
    ['no way to reach it', { remotes: [], packages: [] }],
    ['another package', { packages: [] }],
    ['another version than the package', { version: '9.9.9' }],
  ])('refused: %s', (_what, change) => {
    expect(serverJsonProblems({ ...server, ...change }, client)).not.toEqual([])
  })
  const [npm] = server['packages'] as Record<string, unknown>[]
  const withPackage = (change: Record<string, unknown>) => ({ packages: [{ ...npm, ...change }] })
  const argument = { type: 'positional', value: 'mcp' }
  test.each<[string, Record<string, unknown>]>([
    ['the longest description', { description: 'x'.repeat(100) }],
    ['the shortest', { description: 'x' }],
    ['no title', { title: undefined }],
    ['the shortest title', { title: 'x' }],
    ['the longest title', { title: 'x'.repeat(100) }],
    ['no page about it', { websiteUrl: undefined }],
    ['a repository', { repository: { url: 'https://a.test/r', source: 'forgejo', id: '1', subfolder: 'x' } }],
    ['a repository without more', { repository: { url: 'https://a.test/r', source: 'forgejo' } }],
    ['icons', { icons: [{ src: 'https://a.test/i', mimeType: 'image/png', sizes: ['48x48', 'any'], theme: 'dark' }] }],
    ['an icon without more', { icons: [{ src: 'https://a.test/i' }] }],
    ['no remote', { remotes: undefined }],
    [
      'a remote of events, with headers',
      { remotes: [{ type: 'sse', url: 'https://a.test', headers: [{ name: 'x' }] }] },
    ],
    [
      'a package from npm by its address',
      withPackage({ registryBaseUrl: 'https://registry.npmjs.org', runtimeHint: 'npx' }),
    ],
    ['a package without arguments', withPackage({ packageArguments: undefined, environmentVariables: undefined })],
    ['a flag', withPackage({ packageArguments: [{ type: 'named', name: '--port', isRepeated: true }] })],
    ['arguments of the runtime', withPackage({ runtimeArguments: [argument] })],
    [
      'every kind of input',
      withPackage({
        packageArguments: ['string', 'number', 'boolean', 'filepath'].map((format) => ({
          ...argument,
          format,
          choices: ['a'],
          isRepeated: false,
        })),
      }),
    ],
    [
      'a package that is reached over HTTP',
      withPackage({ transport: { type: 'streamable-http', url: 'https://a.test/mcp' } }),
    ],
  ])('taken: %s', (_what, change) => {
    expect(serverJsonProblems({ ...server, ...change }, client)).toEqual([])
  })
  test.each<[string, Record<string, unknown>, string]>([
    ['a word for a name', { name: 'a' }, 'server.json: name: '],
    ['an empty description', { description: '' }, 'server.json: description: '],
    ['an empty title', { title: '' }, 'server.json: title: '],
    ['a long title', { title: 'x'.repeat(101) }, 'server.json: title: '],
    ['a page that is none', { websiteUrl: 'docs' }, 'server.json: websiteUrl: '],
    ['a repository without a forge', { repository: { url: 'https://a.test/r' } }, 'server.json: repository.source: '],
    ['a package of another registry', withPackage({ registryType: 'pypi' }), 'server.json: packages.0.registryType: '],
    ['npm elsewhere', withPackage({ registryBaseUrl: 'https://a.test' }), 'server.json: packages.0.registryBaseUrl: '],
    ['a package without a name', withPackage({ identifier: '' }), 'server.json: packages.0.identifier: '],
    [
      'the latest package',
      withPackage({ version: 'latest' }),
      'server.json: packages.0.version: must be one exact version',
    ],
    ['no transport', withPackage({ transport: undefined }), 'server.json: packages.0.transport: '],
    [
      'an argument without a value',
      withPackage({ packageArguments: [{ type: 'positional' }] }),
      'server.json: packages.0.packageArguments.0: ',
    ],
    [
      'a flag without a name',
      withPackage({ packageArguments: [{ type: 'named' }] }),
      'server.json: packages.0.packageArguments.0: ',
    ],
    [
      'a variable without a name',
      withPackage({ environmentVariables: [{}] }),
      'server.json: packages.0.environmentVariables.0.name: ',
    ],
    [
      'another version of the package',
      withPackage({ version: '9.9.9' }),
      `server.json: the package is ${client.version}`,
    ],
    ['another package', withPackage({ identifier: 'other' }), `server.json: packages lack "${client.name}"`],
    ['no way to reach it', { remotes: [], packages: [] }, 'server.json: names neither a package nor a remote'],
    ['another version', { version: '9.9.9' }, `server.json: version is ${client.version}`],
  ])('says what is wrong with %s', (_what, change, problem) => {
    const problems = serverJsonProblems({ ...server, ...change }, client)
    expect(
      problems.some((each) => each.startsWith(problem)),
      problems.join('; '),
    ).toBe(true)
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
