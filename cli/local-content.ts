/**
 * Local files for assistants: over stdio the tools that publish take `local` (a file) and `folder`, which are turned
 * into what the service understands before a call leaves the machine. Small files travel inside the message, large
 * ones are sent ahead. Nothing outside the folder that was handed over is read: a page that talks an assistant into
 * publishing somebody's keys must not get them.
 */
import { createReadStream } from 'node:fs'
import { readFile, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { CliError, exitCodes } from './failure.ts'
import { readFolder } from './folder.ts'

/** As base64 in a message; larger files get an address of their own. */
const MAX_INLINE_BYTES = 1_000_000
/** What one message carries. */
const MAX_MESSAGE_BYTES = 20_000_000

/** Code of the errors that are about what a call names on this machine. */
export const LOCAL_CONTENT = 'local_content'

type Json = Record<string, unknown>

export interface LocalContent {
  /** The tools as the service lists them, with the arguments that this machine adds. */
  describe(tools: readonly Json[]): Json[]
  /** The arguments of a call, with what is named on this machine in them. */
  resolve(tool: string, args: Json): Promise<Json>
}

/** Sends a file ahead; returns the id of its upload. */
export type SendAhead = (name: string, body: () => Readable, size: number) => Promise<string>

export function createLocalContent(root: string, sendAhead: SendAhead): LocalContent {
  async function within(named: string): Promise<string> {
    const [base, target] = await Promise.all([
      realpath(root),
      realpath(path.resolve(root, named)).catch(() => {
        throw refused(`"${named}" does not exist in ${root}.`)
      }),
    ])
    if (target !== base && !target.startsWith(base.endsWith(path.sep) ? base : base + path.sep))
      throw refused(`"${named}" is outside of ${root}. Start "dropway mcp <folder>" with a folder that holds it.`)
    return target
  }

  async function contentOf(file: string): Promise<Json> {
    const { size } = await stat(file)
    if (size > MAX_INLINE_BYTES)
      return { upload: await sendAhead(path.basename(file), () => createReadStream(file), size) }
    return { content: (await readFile(file)).toString('base64'), encoding: 'base64' }
  }

  async function resolveFile(entry: unknown): Promise<unknown> {
    if (!isObject(entry) || typeof entry['local'] !== 'string') return entry
    const { local, ...rest } = entry
    return {
      path: local.replaceAll('\\', '/').replace(/^\.\//, ''),
      ...rest,
      ...(await contentOf(await within(local))),
    }
  }

  async function filesOf(named: string): Promise<unknown[]> {
    const folder = await readFolder(await within(named))
    if (folder.secrets.length > 0)
      throw refused(`Nothing was published: "${folder.secrets[0]!.path}" looks like ${folder.secrets[0]!.what}.`)
    const inline = folder.files.reduce((sum, { size }) => sum + (size > MAX_INLINE_BYTES ? 0 : size), 0)
    if (inline > MAX_MESSAGE_BYTES)
      throw refused(`"${named}" is too large for a message. Publish it with: dropway deploy ${named}`)
    const files: unknown[] = []
    for (const file of folder.files) files.push({ path: file.path, ...(await contentOf(file.file)) })
    return files
  }

  return {
    describe: (tools) => tools.map(withLocalArguments),

    async resolve(tool, args) {
      const { local, folder, ...rest } = args
      if (tool === 'service_publish' && typeof local === 'string') {
        const file = await within(local)
        const { size } = await stat(file)
        return { ...rest, upload: await sendAhead(path.basename(file), () => createReadStream(file), size) }
      }
      if (tool === 'service_publish_files' && typeof folder === 'string')
        return { ...rest, files: await filesOf(folder) }
      for (const name of ['files', 'put']) {
        const list = args[name]
        if (!Array.isArray(list)) continue
        const resolved: unknown[] = []
        for (const entry of list) resolved.push(await resolveFile(entry))
        return { ...args, [name]: resolved }
      }
      return args
    },
  }
}

const LOCAL = { type: 'string', description: 'File on this machine, instead of content' }
const FOLDER = { type: 'string', description: 'Folder on this machine, instead of files' }

function withLocalArguments(tool: Json): Json {
  const schema = tool['inputSchema']
  if (!isObject(schema) || !isObject(schema['properties'])) return tool
  const properties: Json = { ...schema['properties'] }
  for (const name of ['files', 'put']) properties[name] = withLocalItem(properties[name])
  if (tool['name'] === 'service_publish') properties['local'] = LOCAL
  if (tool['name'] !== 'service_publish_files')
    return { ...tool, inputSchema: { ...schema, properties: definedOf(properties) } }
  const { required: _, ...rest } = schema
  return { ...tool, inputSchema: { ...rest, properties: definedOf({ ...properties, folder: FOLDER }) } }
}

function withLocalItem(list: unknown): unknown {
  if (!isObject(list) || !isObject(list['items']) || !isObject(list['items']['properties'])) return list
  const { required: _, ...items } = list['items']
  return { ...list, items: { ...items, properties: { ...list['items']['properties'], local: LOCAL } } }
}

function definedOf(properties: Json): Json {
  return Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== undefined))
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function refused(message: string): CliError {
  return new CliError(message, exitCodes.failed, LOCAL_CONTENT)
}
