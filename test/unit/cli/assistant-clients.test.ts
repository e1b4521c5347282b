import { parse as parseToml } from 'smol-toml'
import { describe, expect, test } from 'vitest'
import { assistantClients, NotReadable } from '../../../cli/commands/assistants/clients.ts'

const ADDRESS = 'https://a.test/mcp'
const write = (client: string, before: string): string => assistantClients[client]!.write(before, ADDRESS)
const linux = { home: '/home/me', platform: 'linux', appData: undefined } as const

test.each<[string, string, unknown]>([
  ['claude', '/home/me/.claude.json', { mcpServers: { dropway: { type: 'http', url: ADDRESS } } }],
  ['cursor', '/home/me/.cursor/mcp.json', { mcpServers: { dropway: { url: ADDRESS } } }],
  ['vscode', '/home/me/.config/Code/User/mcp.json', { servers: { dropway: { type: 'http', url: ADDRESS } } }],
  ['windsurf', '/home/me/.codeium/windsurf/mcp_config.json', { mcpServers: { dropway: { serverUrl: ADDRESS } } }],
  ['gemini', '/home/me/.gemini/settings.json', { mcpServers: { dropway: { httpUrl: ADDRESS } } }],
])('%s keeps its servers in %s', (client, file, content) => {
  expect(assistantClients[client]!.file(linux)).toBe(file)
  expect(JSON.parse(write(client, ''))).toEqual(content)
})

describe('JSON', () => {
  test('keeps everything that is there, other servers and the indentation too', () => {
    const before = '{\n\t"theme": "dark",\n\t"mcpServers": {\n\t\t"other": { "command": "x" }\n\t}\n}\n'
    const after = write('claude', before)
    expect(JSON.parse(after)).toEqual({
      theme: 'dark',
      mcpServers: { other: { command: 'x' }, dropway: { type: 'http', url: ADDRESS } },
    })
    expect(after).toContain('\n\t"theme"')
    expect(write('claude', after)).toBe(after)
  })
  test('another address of ours is replaced', () => {
    const before = '{"mcpServers":{"dropway":{"url":"https://old.test/mcp","headers":{}}}}'
    expect(JSON.parse(write('cursor', before))).toEqual({ mcpServers: { dropway: { url: ADDRESS } } })
  })
  test.each(['{ // a comment\n}', '[]', '"x"', '{"mcpServers": []}', '{'])('is left alone where it is %s', (before) => {
    expect(() => write('cursor', before)).toThrow(NotReadable)
  })
})

describe('TOML', () => {
  const other = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y"\n'
  test('is added to at the end; comments stay', () => {
    const after = write('codex', other)
    expect(after).toBe(`${other}\n[mcp_servers.dropway]\nurl = "${ADDRESS}"\n`)
    expect(write('codex', after)).toBe(after)
  })
  test('another address of ours is replaced in its place', () => {
    const before = `${other}\n[mcp_servers.dropway]\nurl = "https://old.test/mcp"\n\n[tools]\nsearch = true\n`
    const after = write('codex', before)
    expect(after.startsWith(other)).toBe(true)
    expect(parseToml(after)).toEqual({
      model: 'x',
      tools: { search: true },
      mcp_servers: { dropway: { url: ADDRESS }, other: { command: 'y' } },
    })
  })
  test.each(['= nonsense', '[mcp_servers]\ndropway = { url = "x" }\n'])('is left alone where it is %s', (before) => {
    expect(() => write('codex', before)).toThrow(NotReadable)
  })
})

test('VS Code keeps its settings elsewhere on other systems', () => {
  const { file } = assistantClients['vscode']!
  expect(file({ ...linux, platform: 'darwin' })).toContain('Library/Application Support/Code/User')
  expect(file({ ...linux, platform: 'win32', appData: '/roaming' })).toBe('/roaming/Code/User/mcp.json')
})
