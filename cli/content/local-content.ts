/**
 * Local files for assistants: over stdio the tools that publish take `local` (a file) and `folder`, which are turned
 * into what the service understands before a call leaves the machine. Small files travel inside the message, large
 * ones are sent ahead, and so is a folder, as one archive: it may hold whatever the plan takes. Nothing outside the folder that was handed over is read: a page that talks an assistant into
 * publishing a person's keys must not get them.
 */
import { readFile, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import yazl from 'yazl'
import { announcedBytes } from '../service/multipart.ts'
import { CliError, exitCodes } from '../terminal/failure.ts'
import { isExport } from './exports.ts'
import { readFolder, type LocalFile } from './folder.ts'

/** Files up to this size travel as base64 in a message; larger ones get an address of their own. */
const MAX_INLINE_BYTES = 1_000_000

/** Code of the errors that are about what a call names on this machine. */
export const LOCAL_CONTENT = 'local_content'

type Json = Record<string, unknown>

export interface LocalContent {
  /** The tools as the service lists them, with the arguments that this machine adds. */
  describe(tools: readonly Json[]): Json[]
  /** A call as the service understands it, with what is named on this machine in it. */
  resolve(call: ToolCall): Promise<ToolCall>
}

export interface ToolCall {
  readonly name: string
  readonly arguments: Json
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
    if ((await stat(target)).isFile() && isExport(target))
      throw refused(`"${named}" is an export of all drops, protected ones too. It is not published.`)
    return target
  }

  async function contentOf(file: string): Promise<Json> {
    const { size } = await stat(file)
    if (size > MAX_INLINE_BYTES)
      return { upload: await sendAhead(path.basename(file), () => openAnnounced(file, size), size) }
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

  /** The folder as an archive that is sent ahead; the id of its upload. */
  async function sendFolder(named: string, allowSecrets: boolean): Promise<string> {
    const folder = await readFolder(await within(named))
    const [secret] = folder.secrets
    if (secret && !allowSecrets) throw refused(`Nothing was published: "${secret.path}" looks like ${secret.what}.`)
    const { size, open } = await archiveOf(folder.files)
    return sendAhead('folder.zip', open, size)
  }

  return {
    describe: (tools) => tools.map(withLocalArguments),

    async resolve({ name, arguments: args }) {
      const { local, folder, ...rest } = args
      if (isPublish(name) && typeof local === 'string') {
        const file = await within(local)
        const { size } = await stat(file)
        const upload = await sendAhead(path.basename(file), () => openAnnounced(file, size), size)
        return { name, arguments: { ...rest, upload } }
      }
      if (isPublish(name) && typeof folder === 'string') {
        const upload = await sendFolder(folder, args['allow_secrets'] === true)
        return { name: 'service_publish', arguments: { ...rest, upload } }
      }
      for (const list of ['files', 'put']) {
        const entries = args[list]
        if (!Array.isArray(entries)) continue
        const resolved: unknown[] = []
        for (const entry of entries) resolved.push(await resolveFile(entry))
        return { name, arguments: { ...args, [list]: resolved } }
      }
      return { name, arguments: args }
    },
  }
}

function openAnnounced(file: string, size: number): Readable {
  return Readable.from(announcedBytes({ path: path.basename(file), file, size }), { objectMode: false })
}

/** Files as they are, one after the other: the size of it all is known before the first byte is read. */
async function archiveOf(files: readonly LocalFile[]): Promise<{ size: number; open: () => Readable }> {
  const zip = new yazl.ZipFile()
  const stream = zip.outputStream as Readable
  zip.on('error', (error: Error) => stream.destroy(error))
  for (const { file, path: name } of files) zip.addFile(file, name, { compress: false })
  // Its types leave out that the callback gets the size.
  const size = await new Promise<number>((resolve) => zip.end(undefined, resolve as () => void))
  return { size, open: () => stream }
}

const LOCAL = { type: 'string', description: 'File on this machine, instead of content' }
const FOLDER = { type: 'string', description: 'Folder on this machine, instead of files' }

function withLocalArguments(tool: Json): Json {
  const schema = tool['inputSchema']
  if (!isObject(schema) || !isObject(schema['properties'])) return tool
  const properties: Json = { ...schema['properties'] }
  for (const name of ['files', 'put']) properties[name] = withLocalItem(properties[name])
  if (isPublish(tool['name'])) Object.assign(properties, { local: LOCAL, folder: FOLDER })
  return { ...tool, inputSchema: { ...schema, properties: definedOf(properties) } }
}

/** The second is the name from before it took files. */
function isPublish(name: unknown): boolean {
  return name === 'service_publish' || name === 'service_publish_files'
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
