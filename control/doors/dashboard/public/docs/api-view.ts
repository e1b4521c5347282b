/** The API reference, written from the OpenAPI document: a page per tag, with a call and an answer for each endpoint. */
import { html, type Html } from '../../../../../shared/pages/html.ts'
import type { NamedOperation, OpenApiDocument } from '../../../../ground/http/openapi.ts'
import type { Schema } from '../../../../ground/http/operations/sample.ts'
import type { Page } from '../../frame/layout.ts'
import { callsOf, type Endpoint } from './curl.ts'
import { docsFrame, idOf, type DocsMap } from './frame-view.ts'

/** `/docs/api/…` of a tag. */
export function tagPath(tag: string): string {
  return `/docs/api/${idOf(tag)}`
}

export function endpointsOf(document: OpenApiDocument, tag: string): Endpoint[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.tags.includes(tag))
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}

export function apiOverviewPage(document: OpenApiDocument, map: DocsMap, baseUrl: string): Page {
  return docsFrame(map, {
    title: 'API reference',
    path: '/docs/api',
    description: 'Every endpoint of the REST API, with a sample call and a sample answer.',
    lead: 'Everything the dashboard does, for scripts. JSON in, JSON out.',
    contents: [
      { id: 'start', text: 'Start here' },
      { id: 'errors', text: 'Errors' },
      { id: 'endpoints', text: 'Endpoints' },
    ],
    body: html`
      <h2 id="start">Start here</h2>
      <p>Publish without an account:</p>
      <pre tabindex="0"><code>curl -F file=@page.html ${baseUrl}/api/v1/drops</code></pre>
      <p>With an account, <a href="/account/tokens">create an API token</a> and send it with every call:</p>
      <pre tabindex="0"><code>export DROPWAY_TOKEN=dw_…
curl -H "Authorization: Bearer $DROPWAY_TOKEN" ${baseUrl}/api/v1/me</code></pre>
      <p>
        Names in capital letters, such as <code>$SITE_ID</code>, stand for ids that earlier answers gave. The
        machine-readable description is <a href="/api/v1/openapi.json">openapi.json</a> (OpenAPI 3.1): generators
        make a client of it in many languages.
      </p>
      <h2 id="errors">Errors</h2>
      <p>
        A refused call changes nothing. The status says whose turn it is, <code>error</code> is for programs,
        <code>detail</code> is for people and says what to do.
      </p>
      <pre tabindex="0"><code>${JSON.stringify({ error: 'slug_taken', detail: 'The slug "my-page" is taken. Choose another.' }, undefined, 2)}</code></pre>
      ${statusTable()}
      <p>Every code is listed, with what to do, in <a href="/docs/errors">error codes</a>.</p>
      <h2 id="endpoints">Endpoints</h2>
      ${document.tags.map(
        ({ name, description }) => html`
          <h3><a href="${tagPath(name)}">${name}</a></h3>
          <p>${description}</p>
          <ul class="endpoints">
            ${endpointsOf(document, name).map(
              ({ method, path, operation }) => html`
                <li>
                  <a href="${tagPath(name)}#${operation.operationId}">
                    <code><span class="verb">${method}</span> ${path}</code>
                  </a>
                  <span class="soft">${operation.summary}</span>
                </li>
              `,
            )}
          </ul>
        `,
      )}
    `,
  })
}

const STATUSES: readonly (readonly [string, string])[] = [
  ['400', 'The request is malformed, a field is missing, or the file cannot be published.'],
  ['401', 'There is no token, or it was revoked.'],
  ['403', 'Not allowed: the mail address is not verified, the plan does not include it, or a cap is reached.'],
  ['404', 'There is no such thing, or it is not yours.'],
  ['409', 'Something else is in the way: the slug is taken, or there is a subscription already.'],
  ['412', 'Another version went live meanwhile (with if_version).'],
  ['413', 'Larger than the plan allows for one upload.'],
  ['429', 'Too often. Wait as long as Retry-After says.'],
  ['5xx', 'Our fault. Try again a little later.'],
]

function statusTable(): Html {
  return html`
    <dl class="facts">
      ${STATUSES.map(([status, meaning]) => html`<dt><code>${status}</code></dt><dd>${meaning}</dd>`)}
    </dl>
  `
}

export function apiTagPage(document: OpenApiDocument, tag: string, map: DocsMap, baseUrl: string): Page {
  const endpoints = endpointsOf(document, tag)
  const description = document.tags.find(({ name }) => name === tag)?.description ?? ''
  return docsFrame(map, {
    title: `${tag} API`,
    path: tagPath(tag),
    description: `${description} Endpoints of the API with sample calls and answers.`,
    lead: description,
    contents: endpoints.map(({ operation }) => ({ id: operation.operationId, text: operation.summary })),
    body: html`${endpoints.map((endpoint) => endpointBlock(endpoint, document, baseUrl))}`,
  })
}

function endpointBlock(endpoint: Endpoint, document: OpenApiDocument, baseUrl: string): Html {
  const { method, path, operation } = endpoint
  return html`
    <section class="operation" aria-labelledby="${operation.operationId}">
      <h2 id="${operation.operationId}">${operation.summary}</h2>
      <p class="endpoint"><code><span class="verb">${method}</span> ${path}</code></p>
      ${credentials(operation)}
      ${callsOf(endpoint, baseUrl).map(
        ({ name, text }) => html`
          ${name !== undefined && html`<p class="small soft">With a ${name}:</p>`}
          <pre tabindex="0"><code class="call">${text}</code></pre>
        `,
      )}
      ${parameters(operation)} ${bodyFields(operation, document)} ${answer(operation, document)}
    </section>
  `
}

function credentials({ security }: NamedOperation): Html {
  if (security.length === 0) return html`<p class="small soft">No credentials needed.</p>`
  if ('session' in (security[0] ?? {}))
    return html`<p class="small soft">From a session of the dashboard; no scope of a token covers this.</p>`
  return html`<p class="small soft">A token needs the scope <code>${security[0]?.['token']?.[0]}</code>.</p>`
}

function parameters({ parameters: all = [] }: NamedOperation): Html | undefined {
  if (all.length === 0) return undefined
  return html`
    <details>
      <summary class="small">${all.length === 1 ? '1 parameter' : `${all.length} parameters`}</summary>
      <dl class="facts small">
        ${all.map(
          (parameter) => html`
            <dt><code>${parameter.name}</code></dt>
            <dd>
              ${parameter.description}
              <span class="soft"
                >${PLACES[parameter.in]}, ${typeInWords(parameter.schema)}${!parameter.required && ', optional'}</span
              >
            </dd>
          `,
        )}
      </dl>
    </details>
  `
}

const PLACES = { path: 'in the path', query: 'in the query', header: 'a header' } as const

function bodyFields({ requestBody }: NamedOperation, document: OpenApiDocument): Html | undefined {
  const [type, media] = Object.entries(requestBody?.content ?? {})[0] ?? []
  if (!media) return undefined
  if (type === 'application/octet-stream') return html`<p class="small soft">The body is the file itself.</p>`
  return fields(type === 'multipart/form-data' ? 'Fields of the form' : 'Body', media.schema, document)
}

function answer({ responses }: NamedOperation, document: OpenApiDocument): Html | undefined {
  const [status, success] = Object.entries(responses).find(([code]) => code.startsWith('2')) ?? []
  if (status === undefined || !success) return undefined
  const [type, media] = Object.entries(success.content ?? {})[0] ?? []
  const headers = Object.entries(success.headers ?? {})
  return html`
    <p class="small soft">
      Answers <code>${status}</code>${type !== undefined && type !== 'application/json' && html` with <code>${type}</code>`}${
        headers.length > 0 && html` with the header <code>${headers.map(([name]) => name).join(', ')}</code>`
      }${media?.example === undefined ? '.' : ':'}
    </p>
    ${
      media?.example !== undefined &&
      html`<pre tabindex="0"><code class="answer">${JSON.stringify(media.example, undefined, 2)}</code></pre>`
    }
    ${media && fields('Answer', media.schema, document)}
  `
}

function fields(title: string, schema: Schema, document: OpenApiDocument): Html | undefined {
  const named = resolved(schema, document)
  const object = named.type === 'array' ? resolved(named.items ?? {}, document) : named
  const entries = Object.entries(object.properties ?? {})
  if (entries.length === 0) return undefined
  const isInput = title !== 'Answer'
  return html`
    <details>
      <summary class="small">
        ${title}${named.type === 'array' && ' (an array)'}: ${entries.length === 1 ? '1 field' : `${entries.length} fields`}
      </summary>
      <dl class="facts small">
        ${entries.map(
          ([name, field]) => html`
            <dt><code>${name}</code></dt>
            <dd>
              ${field.description}
              <span class="soft"
                >${typeInWords(resolved(field, document))}${isInput && !object.required?.includes(name) && ', optional'}</span
              >
            </dd>
          `,
        )}
      </dl>
    </details>
  `
}

function resolved(schema: Schema, { components }: OpenApiDocument): Schema {
  const name = schema.$ref?.replace('#/components/schemas/', '')
  return name === undefined ? schema : (components.schemas[name] ?? {})
}

function typeInWords(schema: Schema): string {
  if (schema.$ref !== undefined) return schema.$ref.replace('#/components/schemas/', '')
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf) return schema.anyOf.map(typeInWords).join(' or ')
  if (schema.type === 'array') return `array of ${typeInWords(schema.items ?? {})}`
  if (schema.format === 'date-time') return 'time (ISO 8601)'
  if (schema.format === 'binary') return 'file'
  return [schema.type ?? 'any'].flat().join(' or ')
}
