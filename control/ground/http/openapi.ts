/** GET /api/v1/openapi.json: the REST API described by the routes themselves. */
import { onFirstUse } from '../../../shared/values/on-first-use.ts'
import { json } from './reply.ts'
import type { Route } from './route.ts'
import type { Operation } from './operations/operation.ts'
import type { Schema } from './operations/sample.ts'

export interface OpenApiOptions {
  /** What people call the service. */
  readonly name: string
  readonly baseUrl: string
  readonly version: string
  /** What each tag is about, in the order in which readers meet them. */
  readonly tags: readonly Tag[]
  /** Name of the cookie that carries a session of the dashboard. */
  readonly sessionCookie: string
}

export interface Tag {
  readonly name: string
  readonly description: string
}

/** An operation of the document, which has a name that generated clients call it by. */
export type NamedOperation = Operation & { readonly operationId: string }

export interface OpenApiDocument {
  readonly openapi: string
  readonly info: Readonly<Record<string, unknown>>
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly Tag[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, NamedOperation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly securitySchemes: Readonly<Record<string, unknown>>
  }
}

const API_PREFIX = '/api/v1'

const ERROR_SCHEMA: Schema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'string',
      description:
        'Machine-readable code. `not_served` (503): an edge could not serve the version, so that nothing was published; try again.',
    },
    detail: { type: 'string', description: 'What happened and what to do.' },
  },
  additionalProperties: true,
}

/** OpenAPI 3.1, described when someone reads it; routes without an `operation` (pages) are left out. */
export function openApiDocument(
  routes: readonly Route[],
  { name, baseUrl, version, tags, sessionCookie }: OpenApiOptions,
): OpenApiDocument {
  const described = onFirstUse(() => describePaths(routes))
  return {
    openapi: '3.1.0',
    info: {
      title: `${name} API`,
      version,
      description: 'Publishes static sites at HTTPS addresses and keeps every upload as a version.',
    },
    servers: [{ url: `${baseUrl}${API_PREFIX}` }],
    tags,
    get paths() {
      return described().paths
    },
    components: {
      get schemas() {
        return described().schemas
      },
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API token from the dashboard settings, or an OAuth token with scope cli. Operations name the scope that a token needs: publish holds read, manage holds both. A token that was made without scopes reaches everything, also what names only session, apart from making tokens and switching organisations.',
        },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: sessionCookie,
          description: "The dashboard's own session, from its own pages (or with their Origin header).",
        },
      },
    },
  }
}

/** The document never changes while the process lives, so it is written once. */
export function openApiRoute(document: OpenApiDocument): Route {
  const headers = { 'cache-control': 'public, max-age=300', 'access-control-allow-origin': '*' }
  return { method: 'GET', path: `${API_PREFIX}/openapi.json`, handle: onFirstUse(() => json(200, document, headers)) }
}

/** What the operations say, and the schemas that they name. */
function describePaths(
  routes: readonly Route[],
): Pick<OpenApiDocument, 'paths'> & Pick<OpenApiDocument['components'], 'schemas'> {
  const schemas: Record<string, Schema> = { Error: ERROR_SCHEMA }
  const paths: Record<string, Record<string, NamedOperation>> = {}
  for (const route of routes) {
    if (!route.operation) continue
    const path = openApiPath(route.path)
    const operation = withComponents({ operationId: operationId(route), ...route.operation() }, schemas)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation }
  }
  return { paths, schemas }
}

/** Moves the named parts of an operation's schemas (`$defs`) to the components, where generators find their names. */
function withComponents<Value>(value: Value, schemas: Record<string, Schema>): Value {
  if (Array.isArray(value)) return value.map((part: unknown) => withComponents(part, schemas)) as Value
  if (typeof value !== 'object' || value === null) return value
  const kept: Record<string, unknown> = {}
  for (const [name, part] of Object.entries(value)) {
    if (name === '$defs') Object.assign(schemas, withComponents(part, schemas))
    else if (name === '$ref') kept[name] = String(part).replace('#/$defs/', '#/components/schemas/')
    // Samples are values, not schemas.
    else kept[name] = name === 'example' || name === 'examples' ? part : withComponents(part, schemas)
  }
  return kept as Value
}

/** `/api/v1/sites/:id` → `/sites/{id}`, relative to the server above. */
function openApiPath(path: string): string {
  return path.replace(API_PREFIX, '').replaceAll(/:([a-z_0-9]+)/g, '{$1}')
}

/** `GET /sites/{id}/versions` → `get_sites_id_versions`: stable, so that generated clients stay compatible. */
function operationId(route: Route): string {
  const words = openApiPath(route.path).match(/[a-z0-9]+/gi) ?? []
  return [route.method.toLowerCase(), ...words].join('_')
}
