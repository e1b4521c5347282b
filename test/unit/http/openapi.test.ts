import { expect, test } from 'vitest'
import { z } from 'zod'
import { createApiRoutes } from '../../../control/ground/http/api.ts'
import { openApiDocument, openApiRoute } from '../../../control/ground/http/openapi.ts'
import { createAllowedMethods } from '../../../control/ground/http/server/patterns.ts'
import { isUnreachable } from '../../../control/ground/http/server/failure.ts'
import { json } from '../../../control/ground/http/reply.ts'
import type { Route } from '../../../control/ground/http/route.ts'

const apiRoute = createApiRoutes(() => Promise.resolve(undefined))
const routes: Route[] = [
  apiRoute({
    method: 'PATCH',
    path: '/api/v1/sites/:id',
    access: 'verified',
    needs: 'manage',
    summary: 'Change settings',
    tag: 'Sites',
    body: z.strictObject({ name: z.string().optional() }),
    status: 200,
    output: z.object({ id: z.string() }),
    run: async () => ({ id: 'st_1' }),
  }),
  { method: 'GET', path: '/page', handle: () => json(200, null) },
]

const options = {
  baseUrl: 'https://dropway.example',
  version: '1.2.3',
  name: 'Acme Pages',
  tags: [{ name: 'Sites', description: 'Sites.' }],
  sessionCookie: 'session',
}

test('the document lists the API, not the pages, with path parameters, schemas and security', () => {
  // Written and read again, as a client gets it.
  const document = JSON.parse(JSON.stringify(openApiDocument(routes, options)))
  expect(document['openapi']).toBe('3.1.0')
  expect(document['info'].title).toBe('Acme Pages API')
  expect(document['servers']).toEqual([{ url: 'https://dropway.example/api/v1' }])
  expect(Object.keys(document['paths'])).toEqual(['/sites/{id}'])
  const operation = document['paths']['/sites/{id}'].patch
  expect(operation.operationId).toBe('patch_sites_id')
  expect(operation.parameters[0]).toMatchObject({ name: 'id', in: 'path', required: true })
  expect(operation.requestBody.content['application/json'].schema.properties.name.type).toBe('string')
  expect(document['components'].securitySchemes.token.scheme).toBe('bearer')
  expect(document['components'].schemas.Error.required).toEqual(['error'])
})

test('the route serves the same document', async () => {
  const route = openApiRoute(openApiDocument(routes, options))
  const reply = await route.handle(undefined as never)
  expect(JSON.parse(reply.body as string)).toHaveProperty(['paths', '/sites/{id}'])
})

test.each([
  ['/a/:id', '/a/b', true],
  ['/a/:id', '/a/', false],
  ['/a/:id', '/a/b/c', false],
  ['/a/*', '/a/b/c', true],
  ['/a/*', '/a/', true],
  ['/a/*', '/a', false],
  ['/a', '/a/', false],
])('%s matches %s: %s', (pattern, path, expected) => {
  expect(createAllowedMethods([{ method: 'PUT', path: pattern }])(path)).toEqual(expected ? ['PUT'] : [])
})

test('allowed methods of a path are those of every pattern that matches it', () => {
  const allowedAt = createAllowedMethods([
    { method: 'GET', path: '/sites/export' },
    { method: 'PATCH', path: '/sites/:id' },
  ])
  expect(allowedAt('/sites/export')).toEqual(['GET', 'HEAD', 'PATCH'])
  expect(allowedAt('/sites/x')).toEqual(['PATCH'])
  expect(allowedAt('/other')).toEqual([])
})

test('errors of an engine that is away are told from bugs', () => {
  const withCode = (code: string, extra = {}) => Object.assign(new Error('x'), { code, ...extra })
  for (const error of [
    withCode('ECONNREFUSED'),
    withCode('CONNECTION_CLOSED'),
    withCode('CONNECT_TIMEOUT'),
    withCode('57P01'),
    withCode('ENOENT', { syscall: 'connect' }),
    new Error('Connection is closed.'),
    new Error("Stream isn't writeable and enableOfflineQueue options is false"),
    new AggregateError([withCode('ECONNREFUSED')]),
  ]) {
    expect(isUnreachable(error), String(error)).toBe(true)
  }
  for (const error of [withCode('ENOENT', { syscall: 'open' }), withCode('23505'), new TypeError('x'), 'text']) {
    expect(isUnreachable(error)).toBe(false)
  }
})
