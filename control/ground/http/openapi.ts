/** GET /api/v1/openapi.json: the REST API described by the routes themselves. */
import { json } from './reply.ts'
import type { Route } from './route.ts'

export interface OpenApiOptions {
  readonly baseUrl: string
  readonly version: string
}

const API_PREFIX = '/api/v1'

const ERROR_SCHEMA = {
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

/** OpenAPI 3.1; routes without an `operation` (pages) are left out. */
export function openApiDocument(
  routes: readonly Route[],
  { baseUrl, version }: OpenApiOptions,
): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    if (!route.operation) continue
    const path = openApiPath(route.path)
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: { operationId: operationId(route), ...route.operation },
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Dropway API',
      version,
      description: 'Publishes static sites at HTTPS addresses and keeps every upload as a version.',
    },
    servers: [{ url: `${baseUrl}${API_PREFIX}` }],
    paths,
    components: {
      schemas: { Error: ERROR_SCHEMA },
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API token from the dashboard settings, or an OAuth token with scope cli.',
        },
      },
    },
  }
}

/** The document never changes while the process lives, so it is written once. */
export function openApiRoute(routes: readonly Route[], options: OpenApiOptions): Route {
  const document = openApiDocument(routes, options)
  const reply = json(200, document, { 'cache-control': 'public, max-age=300', 'access-control-allow-origin': '*' })
  return { method: 'GET', path: `${API_PREFIX}/openapi.json`, handle: () => reply }
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
