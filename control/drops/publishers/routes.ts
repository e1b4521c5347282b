/** REST: /api/v1/sites/{id}/publishers… */
import { z } from 'zod'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import { described } from '../../ground/http/operations/described.ts'
import type { Route } from '../../ground/http/route.ts'
import type { Publishers } from './publishers.ts'
import { PROVIDERS, publisherFields } from './rules.ts'

const root = '/api/v1/sites/:id/publishers'
const tag = 'Publishers'

const newPublisherSchema = z.strictObject({
  provider: described(publisherFields.provider, 'Whose tokens these are.', 'github'),
  issuer: described(
    publisherFields.issuer,
    'Who signs the tokens, where it is not the provider itself: a forge that the operator trusts.',
  ),
  repository: described(publisherFields.repository, 'owner/name; for oidc the expected sub.', 'example/site'),
  workflow: described(publisherFields.workflow, "The workflow file's name; any when left out.", 'deploy.yml'),
  branch: described(publisherFields.branch, 'The branch; any branch or tag when left out.', 'main'),
  environment: described(publisherFields.environment, 'The environment of the job; any when left out.'),
  repository_id: described(publisherFields.repository_id, "The forge's id; pinned by the first use when left out."),
  owner_id: described(publisherFields.owner_id, "The owner's id; pinned by the first use when left out."),
  claims: described(publisherFields.claims, 'For oidc: further claims and their exact values.'),
  pull_requests: described(
    publisherFields.pull_requests,
    'Lets pull requests, also those from forks, publish to a preview of their own (pr-12) and to nothing else. Without it they publish nothing.',
    true,
  ),
})

const publisherSchema = z
  .strictObject({
    id: described(z.string(), 'Id of the publisher.', 'pub_5k2n8s0d1q'),
    provider: described(z.enum(PROVIDERS), 'Whose tokens these are.', 'github'),
    issuer: described(z.string(), 'Who signs them.', 'https://token.actions.githubusercontent.com'),
    repository: described(z.string(), 'The repository.', 'example/site'),
    workflow: described(z.string().nullable(), "The workflow file's name; null for any.", 'deploy.yml'),
    branch: described(z.string().nullable(), 'The branch; null for any.', 'main'),
    environment: described(z.string().nullable(), 'The environment; null for any.', null),
    repository_id: described(z.string().nullable(), 'Pinned; null before the first use.', '1296269'),
    owner_id: described(z.string().nullable(), 'Pinned; null before the first use.', '583231'),
    claims: described(z.record(z.string(), z.string()), 'Further claims.', {}),
    pull_requests: described(z.boolean(), 'Pull requests publish to a preview of their own.', false),
    created_at: described(z.iso.datetime(), 'When it was added.', '2026-11-15T09:00:00.000Z'),
    last_used_at: described(z.iso.datetime().nullable(), 'The last exchange; null when never.', null),
  })
  .meta({ id: 'Publisher' })

type Row = Awaited<ReturnType<Publishers['list']>>[number]

function toPublisher(row: Row): z.input<typeof publisherSchema> {
  const { id, provider, issuer, repository, workflow, branch, environment } = row
  return {
    id,
    provider,
    issuer,
    repository,
    workflow,
    branch,
    environment,
    repository_id: row.repositoryId,
    owner_id: row.ownerId,
    claims: { ...row.claims },
    pull_requests: row.pullRequests,
    created_at: row.createdAt.toISOString(),
    last_used_at: row.lastUsedAt?.toISOString() ?? null,
  }
}

export function publisherRoutes({
  apiRoute,
  publishers,
}: {
  apiRoute: ApiRouteFactory
  publishers: Publishers
}): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: root,
      access: 'verified',
      needs: 'read',
      tag,
      summary: 'The workflows that a site trusts',
      status: 200,
      output: z.array(publisherSchema),
      run: async ({ actor, params }) => (await publishers.list(actor, params.id)).map(toPublisher),
    }),
    apiRoute({
      method: 'POST',
      path: root,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Trust a workflow: its own token publishes to this site, without a secret',
      body: newPublisherSchema,
      status: 201,
      output: publisherSchema,
      run: async ({ actor, params, body }) => toPublisher(await publishers.add(actor, params.id, body)),
    }),
    apiRoute({
      method: 'DELETE',
      path: `${root}/:publisher_id`,
      access: 'verified',
      needs: 'manage',
      tag,
      summary: 'Trust a workflow no longer; what it was given ends at once',
      status: 204,
      output: undefined,
      run: ({ actor, params }) => publishers.remove(actor, params.id, params.publisher_id),
    }),
  ]
}
