/** The API, readable: written from the same operations as openapi.json, with a curl call for each. */
import { html, type Html } from '../../../../shared/pages/html.ts'
import type { Page } from '../frame/layout.ts'
import type { Route } from '../../../ground/http/route.ts'

interface Schema {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly format?: string
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>
}

interface Operation {
  readonly summary: string
  readonly tags: readonly string[]
  readonly security: readonly unknown[]
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content & { readonly description: string }>>
}

interface Endpoint {
  readonly method: string
  readonly path: string
  readonly id: string
  readonly operation: Operation
}

export function docsPage(routes: readonly Route[], baseUrl: string): Page {
  const groups = groupByTag(routes)
  return {
    title: 'API',
    section: 'docs',
    description: 'The Dropway REST API with curl examples.',
    body: html`
      <div class="head">
        <div>
          <h1>API</h1>
          <p class="lead">Everything the dashboard does, for scripts. JSON in, JSON out.</p>
        </div>
      </div>
      <div class="aside">
        <nav class="toc" aria-label="Sections">
          <ul class="side">
            <li><a href="#start">Start here</a></li>
            ${groups.map(([tag]) => html`<li><a href="#${idOf(tag)}">${tag}</a></li>`)}
          </ul>
        </nav>
        <div class="section">
          ${gettingStarted(baseUrl)}
          ${groups.map(
            ([tag, endpoints]) => html`<section aria-labelledby="${idOf(tag)}">
                <h2 id="${idOf(tag)}">${tag}</h2>
                ${endpoints.map((endpoint) => endpointBlock(endpoint, baseUrl))}
              </section>
              \n`,
          )}
        </div>
      </div>
    `,
  }
}

function gettingStarted(baseUrl: string): Html {
  return html`
    <section class="stack" aria-labelledby="start">
      <h2 id="start">Start here</h2>
      <p>Publish without an account:</p>
      <pre tabindex="0"><code>curl -F file=@page.html ${baseUrl}/api/v1/drops</code></pre>
      <p>With an account, <a href="/account/tokens">create an API token</a> and send it with every call:</p>
      <pre tabindex="0"><code>export DROPWAY_TOKEN=dw_…
curl -H "Authorization: Bearer $DROPWAY_TOKEN" ${baseUrl}/api/v1/me</code></pre>
      <p>
        Errors are <code>{"error": "code", "detail": "what to do"}</code> with a fitting status. The
        machine-readable description is <a href="/api/v1/openapi.json">openapi.json</a>. Assistants connect to
        <code>${baseUrl}/mcp</code>.
      </p>
    </section>
  `
}

function endpointBlock({ method, path, id, operation }: Endpoint, baseUrl: string): Html {
  const body = Object.entries(operation.requestBody?.content ?? {})[0]
  const [status, success] = Object.entries(operation.responses).find(([code]) => code.startsWith('2')) ?? []
  const output = success?.content?.['application/json']?.schema
  return html`
    <article class="operation" id="${id}">
      <h3><span class="verb">${method}</span> ${path}</h3>
      <p>${operation.summary}${operation.security.length === 0 ? '. No credentials needed.' : '.'}</p>
      <pre tabindex="0"><code>${curlOf({ method, path, id, operation }, baseUrl)}</code></pre>
      ${body?.[1].schema && fields('Body', body[1].schema)}
      ${
        status !== undefined &&
        html`<p class="small soft">Answers <code>${status}</code>${output === undefined ? '.' : ':'}</p>`
      }
      ${output && fields('Answer', output)}
    </article>
  `
}

function fields(title: string, schema: Schema): Html | undefined {
  const object = schema.type === 'array' ? schema.items : schema
  const entries = Object.entries(object?.properties ?? {})
  if (entries.length === 0) return undefined
  return html`
    <details>
      <summary class="small">
        ${title}${schema.type === 'array' ? ' (array)' : ''}: ${entries.length} fields
      </summary>
      <dl class="facts small">
        ${entries.map(
          ([name, field]) => html`
            <dt><code>${name}</code></dt>
            <dd>
              ${typeInWords(field)}${title === 'Body' && !object?.required?.includes(name) ? ', optional' : ''}
            </dd>
          `,
        )}
      </dl>
    </details>
  `
}

function typeInWords(schema: Schema): string {
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf) return schema.anyOf.map(typeInWords).join(' or ')
  if (schema.type === 'array') return `array of ${typeInWords(schema.items ?? {})}`
  if (schema.format === 'date-time') return 'time (ISO 8601)'
  return [schema.type ?? 'any'].flat().join(' or ')
}

/** Longer calls go over several lines. */
const MAX_CURL_CHARS = 76

/** A call that can be pasted: placeholders in the path stand out as upper-case words. */
function curlOf({ method, path, operation }: Endpoint, baseUrl: string): string {
  const parts = ['curl']
  if (method !== 'GET') parts.push(`-X ${method}`)
  if (operation.security.length > 0) parts.push('-H "Authorization: Bearer $DROPWAY_TOKEN"')
  const [type, body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
  if (type === 'multipart/form-data') parts.push(path.endsWith('bundle') ? '-F file=@site.zip' : '-F file=@page.html')
  else if (type === 'application/json') parts.push(`--json '${JSON.stringify(exampleOf(body?.schema ?? {}))}'`)
  else if (type !== undefined) parts.push('--data-binary @file')
  if (path.endsWith('/export')) parts.push('-o drops.zip')
  parts.push(`"${baseUrl}${path.replace(/:([a-z_0-9]+)/g, (_match, name: string) => `$${name.toUpperCase()}`)}"`)
  const line = parts.join(' ')
  return line.length <= MAX_CURL_CHARS ? line : parts.join(' \\\n  ')
}

const EXAMPLES: Readonly<Record<string, unknown>> = {
  slug: 'my-page',
  name: 'My page',
  title: 'Hello',
  markdown: '# Hello',
  domain: 'www.example.com',
  spa_fallback: true,
  email: 'you@example.com',
}

function exampleOf(schema: Schema): unknown {
  const required = new Set(schema.required ?? [])
  const properties = Object.entries(schema.properties ?? {})
  const shown = properties.filter(([name]) => required.has(name) || name in EXAMPLES).slice(0, 3)
  return Object.fromEntries(shown.map(([name, property]) => [name, EXAMPLES[name] ?? placeholder(property)]))
}

function placeholder(schema: Schema): unknown {
  const type = [schema.type ?? 'string'].flat()[0]
  if (schema.enum) return schema.enum[0]
  if (type === 'boolean') return true
  if (type === 'integer' || type === 'number') return 1
  if (type === 'array') return []
  return type === 'object' ? {} : '…'
}

function groupByTag(routes: readonly Route[]): [string, Endpoint[]][] {
  const groups = new Map<string, Endpoint[]>()
  for (const route of routes) {
    if (!route.operation) continue
    const operation = route.operation as typeof route.operation & Operation
    const tag = operation.tags[0] ?? 'Other'
    const endpoint = { method: route.method, path: route.path, id: idOf(`${route.method} ${route.path}`), operation }
    groups.set(tag, [...(groups.get(tag) ?? []), endpoint])
  }
  return [...groups]
}

function idOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}
