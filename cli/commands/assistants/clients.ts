/** Assistants that can be connected, where each keeps its servers, and how an entry for ours is written. Pure. */
import path from 'node:path'
import { parse as parseToml } from 'smol-toml'

/** The name of our entry in every client. */
const NAME = 'dropway'

interface Place {
  readonly home: string
  readonly platform: NodeJS.Platform
  /** %APPDATA%, on Windows. */
  readonly appData: string | undefined
}

export interface AssistantClient {
  /** As people call it. */
  readonly title: string
  file(place: Place): string
  /** What to do once the file is written. */
  readonly next: string
  /** The file with our entry. Throws NotReadable where what is there cannot be kept. */
  write(before: string, address: string): string
}

/** What is in the file is no JSON or TOML that can be changed without losing something. */
export class NotReadable extends Error {}

export const assistantClients: Readonly<Record<string, AssistantClient>> = {
  claude: {
    title: 'Claude Code',
    file: ({ home }) => path.join(home, '.claude.json'),
    next: 'Start claude and type /mcp to sign in.',
    write: inJson('mcpServers', (url) => ({ type: 'http', url })),
  },
  codex: {
    title: 'Codex',
    file: ({ home }) => path.join(home, '.codex', 'config.toml'),
    next: `Run "codex mcp login ${NAME}" to sign in.`,
    write: inToml,
  },
  cursor: {
    title: 'Cursor',
    file: ({ home }) => path.join(home, '.cursor', 'mcp.json'),
    next: 'Open Cursor, Settings, Tools & MCP, to sign in.',
    write: inJson('mcpServers', (url) => ({ url })),
  },
  vscode: {
    title: 'VS Code',
    file: (place) => path.join(codeFolder(place), 'Code', 'User', 'mcp.json'),
    next: 'Run the command "MCP: List Servers" to start it and sign in.',
    write: inJson('servers', (url) => ({ type: 'http', url })),
  },
  windsurf: {
    title: 'Windsurf',
    file: ({ home }) => path.join(home, '.codeium', 'windsurf', 'mcp_config.json'),
    next: 'Reload the servers in Windsurf, Cascade, MCPs, to sign in.',
    write: inJson('mcpServers', (serverUrl) => ({ serverUrl })),
  },
  gemini: {
    title: 'Gemini CLI',
    file: ({ home }) => path.join(home, '.gemini', 'settings.json'),
    next: `Start gemini and type "/mcp auth ${NAME}" to sign in.`,
    write: inJson('mcpServers', (httpUrl) => ({ httpUrl })),
  },
}

function codeFolder({ home, platform, appData }: Place): string {
  if (platform === 'darwin') return path.join(home, 'Library', 'Application Support')
  return platform === 'win32' ? (appData ?? path.join(home, 'AppData', 'Roaming')) : path.join(home, '.config')
}

/** A JSON file with our entry below `key`; all else stays, and so does its indentation. */
function inJson(key: string, entryOf: (address: string) => object): AssistantClient['write'] {
  return (before, address) => {
    const whole = before.trim() === '' ? {} : parsedJson(before)
    const servers = whole[key] ?? {}
    if (!isObject(servers)) throw new NotReadable(`"${key}" is no object`)
    const indent =
      before
        .split('\n')
        .map(indentOf)
        .find((blanks) => blanks !== '') ?? '  '
    const after = { ...whole, [key]: { ...servers, [NAME]: entryOf(address) } }
    return `${JSON.stringify(after, null, indent)}\n`
  }
}

function indentOf(line: string): string {
  return line.slice(0, line.length - line.trimStart().length)
}

function parsedJson(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new NotReadable('it is no plain JSON')
  }
  if (!isObject(value)) throw new NotReadable('it is no JSON object')
  return value
}

/** TOML is added to at its end, so that comments and order stay; an entry of ours that is there is written anew in its place. */
function inToml(before: string, address: string): string {
  const table = `[mcp_servers.${NAME}]`
  const entry = `${table}\nurl = ${JSON.stringify(address)}\n`
  const servers = parsedToml(before)['mcp_servers']
  if (!isObject(servers) || servers[NAME] === undefined)
    return before.trim() === '' ? entry : `${before.trimEnd()}\n\n${entry}`
  const lines = before.split('\n')
  const start = lines.findIndex((line) => line.trim() === table)
  if (start < 0) throw new NotReadable(`"${NAME}" is there in another form`)
  const rest = lines.slice(start + 1)
  const length = rest.findIndex((line) => line.trimStart().startsWith('['))
  const after = length < 0 ? [] : rest.slice(length)
  return [...lines.slice(0, start), entry.trimEnd(), ...(after.length > 0 ? ['', ...after] : [''])].join('\n')
}

function parsedToml(text: string): Record<string, unknown> {
  try {
    return parseToml(text)
  } catch {
    throw new NotReadable('it is no TOML')
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
