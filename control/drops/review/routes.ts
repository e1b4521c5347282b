/** REST: /api/v1/sites/:id/threads… for members, viewers and guests alike. */
import { z } from 'zod'
import type { Scope } from '../../ground/actor.ts'
import { parse } from '../../ground/http/api.ts'
import { described } from '../../ground/http/operations/described.ts'
import { describeOperation, type OperationSpec } from '../../ground/http/operations/operation.ts'
import { json, noContent } from '../../ground/http/reply.ts'
import { paramsOf, type Method, type PathParams, type Route } from '../../ground/http/route.ts'
import { THREAD_LABELS, THREAD_STATES } from '../threads/rules.ts'
import {
  changeThreadSchema,
  editMessageSchema,
  messageSchema,
  openThreadSchema,
  threadSchema,
  threadsSchema,
  writeMessageSchema,
} from '../threads/schemas.ts'
import type { Review } from '../threads/review.ts'
import type { Reviewer } from '../threads/reviewer.ts'
import { GUEST_HEADER, type Reviewers } from './reviewers.ts'

const site = '/api/v1/sites/:id'
const tag = 'Threads'

interface ReviewRoutesDependencies {
  readonly review: Review
  readonly reviewers: Pick<Reviewers, 'require'>
}

interface ReviewCall<Path extends string, Body extends z.ZodType, Query extends z.ZodType> {
  readonly reviewer: Reviewer
  readonly params: PathParams<Path>
  readonly body: z.output<Body>
  readonly query: z.output<Query>
}

interface ReviewRouteSpec<
  Path extends `${typeof site}/${string}`,
  Body extends z.ZodType,
  Query extends z.ZodType,
  Output extends z.ZodType | undefined,
> extends Pick<OperationSpec, 'summary' | 'status'> {
  readonly method: Method
  readonly path: Path
  readonly needs: Scope
  readonly body?: Body
  readonly query?: Query
  readonly output: Output
  run(call: ReviewCall<Path, Body, Query>): Promise<Output extends z.ZodType ? z.input<Output> : void>
}

const headers = z.object({
  [GUEST_HEADER]: described(
    z.string(),
    'The token of a guest link, instead of a credential of the account.',
  ).optional(),
})

/** As `apiRoute`, for callers who need no account: what they may do is decided by the service. */
function reviewRoute<
  Path extends `${typeof site}/${string}`,
  Body extends z.ZodType = z.ZodUndefined,
  Query extends z.ZodType = z.ZodUndefined,
  Output extends z.ZodType | undefined = undefined,
>({ reviewers }: Pick<ReviewRoutesDependencies, 'reviewers'>, spec: ReviewRouteSpec<Path, Body, Query, Output>): Route {
  return {
    method: spec.method,
    path: spec.path,
    operation: describeOperation({ ...spec, access: 'verified', tag, headers }),
    async handle(request) {
      const params = paramsOf(spec.path, request)
      const reviewer = await reviewers.require(request, (params as { id: string }).id, spec.needs)
      const body = spec.body ? parse(spec.body, await request.json()) : undefined
      const query = spec.query ? parse(spec.query, Object.fromEntries(request.query)) : undefined
      const result = await spec.run({ reviewer, params, body, query } as ReviewCall<Path, Body, Query>)
      return spec.output ? json(spec.status, spec.output.parse(result)) : noContent()
    },
  }
}

export function reviewRoutes(deps: ReviewRoutesDependencies): Route[] {
  return [...threadRoutes(deps), ...messageRoutes(deps)]
}

function threadRoutes(deps: ReviewRoutesDependencies): Route[] {
  const { review } = deps
  return [
    reviewRoute(deps, {
      method: 'GET',
      path: `${site}/threads`,
      needs: 'read',
      summary: 'What people say about a site: open threads, each with where it is in the newest version',
      status: 200,
      query: z.strictObject({
        state: described(z.enum([...THREAD_STATES, 'all']).default('open'), 'Which threads.', 'open'),
        label: described(z.enum(THREAD_LABELS), 'Only those with this label.', 'must').optional(),
      }),
      output: threadsSchema,
      run: async ({ reviewer, query }) => ({ threads: await review.list(reviewer, query) }),
    }),
    reviewRoute(deps, {
      method: 'POST',
      path: `${site}/threads`,
      needs: 'publish',
      summary: 'Say something about a page, or about a passage of it',
      status: 201,
      body: openThreadSchema,
      output: threadSchema,
      run: ({ reviewer, body }) => review.open(reviewer, body),
    }),
    reviewRoute(deps, {
      method: 'PATCH',
      path: `${site}/threads/:thread_id`,
      needs: 'publish',
      summary: 'Resolve or reopen a thread, or say how much it matters',
      status: 200,
      body: changeThreadSchema,
      output: threadSchema,
      run: ({ reviewer, params, body }) => review.change(reviewer, params.thread_id, body),
    }),
  ]
}

function messageRoutes(deps: ReviewRoutesDependencies): Route[] {
  const { review } = deps
  const ofThread = `${site}/threads/:thread_id/messages` as const
  const edit = {
    method: 'PATCH',
    needs: 'publish',
    summary: 'Change what you wrote',
    status: 200,
    body: editMessageSchema,
    output: messageSchema,
  } as const
  const remove = {
    method: 'DELETE',
    needs: 'publish',
    summary: 'Delete a message: your own, or any as a member. A thread goes with its last one',
    status: 204,
    output: undefined,
  } as const
  return [
    reviewRoute(deps, {
      method: 'POST',
      path: ofThread,
      needs: 'publish',
      summary: 'Answer in a thread',
      status: 201,
      body: writeMessageSchema,
      output: messageSchema,
      run: ({ reviewer, params, body }) => review.reply(reviewer, params.thread_id, body),
    }),
    reviewRoute(deps, {
      ...edit,
      path: `${site}/messages/:message_id`,
      run: ({ reviewer, params, body }) => review.edit(reviewer, params.message_id, body.body),
    }),
    reviewRoute(deps, {
      ...remove,
      path: `${site}/messages/:message_id`,
      run: ({ reviewer, params }) => review.remove(reviewer, params.message_id),
    }),
    // The same by the longer way, which callers compose from the address of the thread; no part of the reference.
    undocumented(
      reviewRoute(deps, {
        ...edit,
        path: `${ofThread}/:message_id`,
        run: ({ reviewer, params, body }) => review.edit(reviewer, params.message_id, body.body),
      }),
    ),
    undocumented(
      reviewRoute(deps, {
        ...remove,
        path: `${ofThread}/:message_id`,
        run: ({ reviewer, params }) => review.remove(reviewer, params.message_id),
      }),
    ),
  ]
}

function undocumented({ method, path, handle }: Route): Route {
  return { method, path, handle }
}
