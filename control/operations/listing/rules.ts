/**
 * What registries and directories of assistants ask of a server, as they publish it: the schema of the official MCP
 * registry (2025-12-11), the review rules of the directories of Claude and ChatGPT, the formats of skills and of llms.txt.
 * Each check names what is wrong; nothing is said of what is right. Pure.
 *
 * No package on npm carries the registry's schema: what stands here was written from it, and is stricter where it may be.
 */
import { z } from 'zod'

/** A name in reverse-DNS form with exactly one slash. */
const SERVER_NAME = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/
const EXACT_VERSION = /^\d+\.\d+\.\d+(?:[-+][\w.-]+)?$/
/** What MCP clients take for the name of a tool. */
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/

const input = {
  description: z.string().optional(),
  isRequired: z.boolean().optional(),
  isSecret: z.boolean().optional(),
  format: z.enum(['string', 'number', 'boolean', 'filepath']).optional(),
  default: z.string().optional(),
  value: z.string().optional(),
  choices: z.array(z.string()).optional(),
}
const positional = z
  .strictObject({
    ...input,
    type: z.literal('positional'),
    valueHint: z.string().optional(),
    isRepeated: z.boolean().optional(),
  })
  .refine(({ value, valueHint }) => value !== undefined || valueHint !== undefined, 'needs a value or a valueHint')
const named = z.strictObject({
  ...input,
  type: z.literal('named'),
  name: z.string(),
  isRepeated: z.boolean().optional(),
})
const header = z.strictObject({ ...input, name: z.string() })

const remote = z.strictObject({
  type: z.enum(['streamable-http', 'sse']),
  url: z.url({ protocol: /^https$/ }),
  headers: z.array(header).optional(),
})

const npmPackage = z.strictObject({
  registryType: z.literal('npm'),
  registryBaseUrl: z.literal('https://registry.npmjs.org').optional(),
  identifier: z.string().min(1),
  version: z.string().regex(EXACT_VERSION, 'must be one exact version'),
  runtimeHint: z.string().optional(),
  transport: z.union([z.strictObject({ type: z.literal('stdio') }), remote]),
  runtimeArguments: z.array(z.union([positional, named])).optional(),
  packageArguments: z.array(z.union([positional, named])).optional(),
  environmentVariables: z.array(header).optional(),
})

const serverSchema = z.strictObject({
  $schema: z.literal('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'),
  name: z.string().min(3).max(200).regex(SERVER_NAME, 'must be a reverse-DNS name with one slash'),
  title: z.string().min(1).max(100).optional(),
  description: z.string().min(1).max(100),
  version: z.string().max(255).regex(EXACT_VERSION, 'must be one exact version'),
  websiteUrl: z.url().optional(),
  repository: z
    .strictObject({ url: z.url(), source: z.string(), id: z.string().optional(), subfolder: z.string().optional() })
    .optional(),
  icons: z
    .array(
      z.strictObject({
        src: z.url({ protocol: /^https$/ }).max(255),
        mimeType: z.enum(['image/png', 'image/jpeg', 'image/jpg', 'image/svg+xml', 'image/webp']).optional(),
        sizes: z.array(z.string().regex(/^(?:\d+x\d+|any)$/)).optional(),
        theme: z.enum(['light', 'dark']).optional(),
      }),
    )
    .optional(),
  packages: z.array(npmPackage).optional(),
  remotes: z.array(remote).optional(),
})

export interface ClientPackage {
  readonly name: string
  readonly version: string
  readonly mcpName?: string
}

/** `server.json` against the registry's schema, and against the package that it names. */
export function serverJsonProblems(value: unknown, client: ClientPackage): string[] {
  const parsed = serverSchema.safeParse(value)
  if (!parsed.success)
    return parsed.error.issues.map(({ path, message }) => `server.json: ${path.join('.')}: ${message}`)
  const { name, version, packages = [], remotes = [] } = parsed.data
  const own = packages.find(({ identifier }) => identifier === client.name)
  return [
    ...when(packages.length + remotes.length === 0, 'server.json: names neither a package nor a remote'),
    ...when(client.mcpName !== name, `cli/package.json: mcpName must be "${name}"`),
    ...when(own === undefined, `server.json: packages lack "${client.name}"`),
    ...when(own !== undefined && own.version !== client.version, `server.json: the package is ${client.version}`),
    ...when(version !== client.version, `server.json: version is ${client.version}`),
  ]
}

export interface ListedTool {
  readonly name: string
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly annotations?: Readonly<Record<string, unknown>> | undefined
}

const HINTS = ['readOnlyHint', 'destructiveHint', 'openWorldHint'] as const

/** Both directories ask for a title and honest hints; ChatGPT's for all three of them. */
export function toolProblems(tools: readonly ListedTool[]): string[] {
  const names = tools.map(({ name }) => name)
  return [
    ...when(new Set(names).size !== names.length, 'two tools have one name'),
    ...tools.flatMap(({ name, title, description = '', inputSchema, annotations = {} }) => [
      ...when(!TOOL_NAME.test(name), `${name}: is no name of a tool`),
      ...when(!title, `${name}: has no title`),
      ...when(description.length < 20, `${name}: does not say what it does`),
      ...when(description.length > 1024, `${name}: says too much`),
      ...when(inputSchema['type'] !== 'object', `${name}: takes no object`),
      ...HINTS.flatMap((hint) => when(typeof annotations[hint] !== 'boolean', `${name}: does not state ${hint}`)),
      ...when(
        annotations['readOnlyHint'] === true && annotations['destructiveHint'] === true,
        `${name}: says that it only reads, and that it destroys`,
      ),
    ]),
  ]
}

/** A card may load nothing from everywhere, and its page must hold all that it shows. */
export function cardProblems(card: {
  readonly text: string
  readonly csp: Readonly<Record<string, readonly string[]>>
}): string[] {
  const origins = Object.values(card.csp).flat()
  const isLoading = /\b(?:src|href)=["']?(?:https?:)?\/\//i.test(card.text)
  return [
    ...origins.flatMap((origin) =>
      when(!/^https:\/\/(?:\*\.)?[a-z0-9.-]+(?::\d+)?$/.test(origin), `the card allows "${origin}"`),
    ),
    ...when(isLoading, 'the card loads something'),
  ]
}

/** What both directories want to reach: a privacy policy, terms, and a person. */
export function pageProblems(paths: readonly string[]): string[] {
  return ['/privacy', '/terms', '/help'].flatMap((path) => when(!paths.includes(path), `there is no page ${path}`))
}

/** The front matter of a skill, and its folder's name. */
export function skillProblems(folder: string, text: string): string[] {
  const front = /^---\n([\s\S]*?)\n---\n/.exec(text)?.[1]
  if (front === undefined) return [`skills/${folder}: has no front matter`]
  const fieldOf = (name: string): string =>
    front
      .split('\n')
      .find((line) => line.startsWith(name))
      ?.slice(name.length)
      .trim() ?? ''
  const [name, description] = [fieldOf('name:'), fieldOf('description:')]
  return [
    ...when(
      name !== folder || !/^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/.test(name),
      `skills/${folder}: its name must be "${folder}"`,
    ),
    ...when(
      description === '' || description.length > 1024,
      `skills/${folder}: a description has 1 to 1024 characters`,
    ),
    ...when(/[<>]/.test(description), `skills/${folder}: a description holds no tags`),
  ]
}

/** llmstxt.org: a title, perhaps what it is about, then lists of links below headings. */
export function llmsTxtProblems(text: string): string[] {
  const lines = text.split('\n')
  const sections = lines.flatMap((line, at) => (line.startsWith('## ') ? [at] : []))
  const listed = lines.slice(sections[0] ?? lines.length).filter((line) => line !== '' && !line.startsWith('## '))
  return [
    ...when(!/^# \S/.test(text), 'llms.txt: begins with no title'),
    ...when(lines.filter((line) => line.startsWith('# ')).length !== 1, 'llms.txt: has more than one title'),
    ...when(sections.length === 0, 'llms.txt: lists nothing'),
    ...listed.flatMap((line) =>
      when(!/^- \[[^\]]+\]\(https:\/\/[^)\s]+\)(?:: .+)?$/.test(line), `llms.txt: no link: ${line}`),
    ),
  ]
}

function when(isWrong: boolean, problem: string): string[] {
  return isWrong ? [problem] : []
}
