/** REST: /api/v1/sites/{id}/domains… */
import { z } from 'zod'
import { WithHeaders, type ApiRouteFactory } from '../../ground/http/api.ts'
import type { Route } from '../../ground/http/route.ts'
import { propagationHeaders } from '../sites/propagation.ts'
import type { Domains } from './domains.ts'
import { addDomainSchema, domainSchema } from './schemas.ts'

const root = '/api/v1/sites/:id/domains'
const tag = 'Domains'

export function domainRoutes({ apiRoute, domains }: { apiRoute: ApiRouteFactory; domains: Domains }): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: root,
      access: 'verified',
      needs: 'read',
      tag,
      summary: 'List the custom domains of a site',
      status: 200,
      output: z.array(domainSchema),
      run: ({ actor, params }) => domains.list(actor, params.id),
    }),
    apiRoute({
      method: 'POST',
      path: root,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Add a custom domain; an apex brings its www along, and the other way round',
      body: addDomainSchema,
      status: 201,
      output: domainSchema,
      run: ({ actor, params, body }) => domains.add(actor, params.id, body),
    }),
    apiRoute({
      method: 'GET',
      path: `${root}/:domain`,
      access: 'verified',
      needs: 'read',
      tag,
      summary: 'State of a custom domain, and the DNS records that are missing or wrong',
      status: 200,
      output: domainSchema,
      run: ({ actor, params }) => domains.get(actor, params.id, params.domain),
    }),
    apiRoute({
      method: 'POST',
      path: `${root}/:domain/check`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Check DNS and certificate now',
      status: 200,
      output: domainSchema,
      run: ({ actor, params }) => domains.check(actor, params.id, params.domain),
    }),
    apiRoute({
      method: 'POST',
      path: `${root}/:domain/main`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Make this half of an apex/www pair the main name; the other leads to it',
      status: 200,
      output: domainSchema,
      run: ({ actor, params }) => domains.makeMain(actor, params.id, params.domain),
    }),
    apiRoute({
      method: 'DELETE',
      path: `${root}/:domain`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Remove a custom domain; its certificate is revoked',
      status: 204,
      output: undefined,
      async run({ actor, params }) {
        const { pending } = await domains.remove(actor, params.id, params.domain)
        return new WithHeaders(undefined, propagationHeaders(pending))
      },
    }),
  ]
}
