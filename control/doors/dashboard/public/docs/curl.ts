/** Calls of an endpoint that can be pasted into a terminal, made of the samples in the OpenAPI document. */
import type { NamedOperation } from '../../../../ground/http/openapi.ts'

export interface Endpoint {
  readonly method: string
  /** `/sites/{id}`. */
  readonly path: string
  readonly operation: NamedOperation
}

export interface Call {
  /** Where there are several ways to call it: which one this is. */
  readonly name: string | undefined
  readonly text: string
}

/** Longer calls go over several lines. */
const MAX_LINE_CHARS = 76

export function callsOf({ method, path, operation }: Endpoint, baseUrl: string): Call[] {
  const bodies = bodiesOf(operation)
  return bodies.map(({ name, parts }) => {
    const head = ['curl']
    // curl says POST by itself when there is something to send, and PUT with -T.
    const implied = parts.some((part) => part.startsWith('-T')) ? 'PUT' : parts.length > 0 ? 'POST' : 'GET'
    if (method !== implied) head.push(`-X ${method}`)
    const words = [...head, ...credentialsOf(operation, baseUrl), ...parts, ...outputOf(operation)]
    words.push(`"${baseUrl}/api/v1${pathWithVariables(path)}${queryOf(operation)}"`)
    const line = words.join(' ')
    const text = line.length <= MAX_LINE_CHARS ? line : [head.join(' '), ...words.slice(head.length)].join(' \\\n  ')
    return { name: bodies.length > 1 ? name : undefined, text }
  })
}

function credentialsOf({ security }: NamedOperation, baseUrl: string): string[] {
  if (security.length === 0) return []
  return 'session' in (security[0] ?? {})
    ? ['-b "__Host-dropway_session=$DROPWAY_SESSION"', `-H "Origin: ${baseUrl}"`]
    : ['-H "Authorization: Bearer $DROPWAY_TOKEN"']
}

function bodiesOf({ requestBody }: NamedOperation): { name: string | undefined; parts: string[] }[] {
  const [type, media] = Object.entries(requestBody?.content ?? {})[0] ?? []
  if (type === 'application/octet-stream') return [{ name: undefined, parts: ['-T index.html'] }]
  if (type === 'application/json')
    return [{ name: undefined, parts: [`--json '${JSON.stringify(media?.example).replaceAll("'", `'\\''`)}'`] }]
  const forms = Object.entries(media?.examples ?? {})
  if (forms.length === 0) return [{ name: undefined, parts: [] }]
  return forms.map(([name, { value }]) => ({ name, parts: formParts(value as Record<string, unknown>) }))
}

/** `files` and `paths` go in pairs, as the service reads them. */
function formParts(fields: Readonly<Record<string, unknown>>): string[] {
  const { files, paths, ...others } = fields
  const pairs =
    Array.isArray(files) && Array.isArray(paths)
      ? files.map((file, index) => `-F files=@${String(file)} -F paths=${String(paths[index])}`)
      : []
  const rest = Object.entries(others).map(([name, value]) =>
    isFileField(name) ? `-F ${name}=@${String(value)}` : `-F ${name}="${String(value)}"`,
  )
  return [...pairs, ...rest]
}

/** The file of an upload, or one named by the hash of its content. */
function isFileField(name: string): boolean {
  return name === 'file' || /^[0-9a-f]{64}$/.test(name)
}

function outputOf({ responses }: NamedOperation): string[] {
  const success = Object.entries(responses).find(([code]) => code.startsWith('2'))?.[1]
  if (success?.content?.['application/zip']) return ['-o drops.zip']
  // What matters is in the headers.
  return success?.headers ? ['-i'] : []
}

function queryOf({ parameters = [] }: NamedOperation): string {
  const shown = parameters.filter(({ in: place, example }) => place === 'query' && example !== undefined)
  return shown.length === 0 ? '' : `?${shown.map(({ name, example }) => `${name}=${String(example)}`).join('&')}`
}

/** `/sites/{id}/versions/{version_id}` → `/sites/$SITE_ID/versions/$VERSION_ID`. */
function pathWithVariables(path: string): string {
  const parts = path.split('/')
  const named = parts.map((part, index) => {
    if (!part.startsWith('{')) return part
    const name = part.slice(1, -1)
    const variable = name === 'id' ? `${(parts[index - 1] ?? '').replace(/s$/, '')}_id` : name
    return `$${variable.toUpperCase()}`
  })
  return named.join('/')
}
