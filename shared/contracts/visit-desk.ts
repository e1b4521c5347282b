/**
 * Contract 5: what an edge asks control about a visitor who is not in yet, and what control says. The edge shows the
 * pages; control knows who may come in. It is asked over the private line between the planes.
 */
import { z } from 'zod'

export const VISIT_DESK_PATH = '/api/v1/visit-desk'

/** Addresses at a drop's own host. */
export const VISIT_PATH = '/.dropway/visit'
export const ENTER_PATH = '/.dropway/enter'
export const GUEST_PATH = '/.dropway/guest'
/** At the service's host: where a visitor proves their address by the operator's sign-in provider. */
export const PROVIDER_VISIT_PATH = '/visit/oidc'
/** In the query of an entry: the person has just come from the sign-in provider, and needs no button to press. */
export const DIRECT = 'direct=1'

/** A path as logs may show it: the links of guests and viewers hold a secret. */
export function withoutToken(path: string): string {
  const [, review] = /^(\/review\/[^/]*\/guest)\//.exec(path) ?? []
  if (review !== undefined) return `${review}/…`
  const door = [ENTER_PATH, GUEST_PATH].find((each) => path.startsWith(`${each}/`))
  return door === undefined ? path : `${door}/…`
}

const site = { site_id: z.string().max(60), host: z.string().max(300) }
const email = z.string().max(400)
const token = z.string().max(400)

export const visitQuestionSchema = z.discriminatedUnion('kind', [
  /** Send a code and a link to this address, if it may see the drop. */
  z.strictObject({ kind: z.literal('code'), ...site, email, next: z.string().max(2000) }),
  /** The code that came by mail. */
  z.strictObject({ kind: z.literal('try'), ...site, email, code: z.string().max(40) }),
  /** The link that came by mail, once its button was pressed. */
  z.strictObject({ kind: z.literal('enter'), ...site, token }),
  z.strictObject({ kind: z.literal('guest'), ...site, token }),
  /** A program: what it sent as `Authorization: Bearer` or as `Dropway-Guest`. */
  z.strictObject({ kind: z.literal('machine'), ...site, bearer: token.optional(), guest: token.optional() }),
  /** Tell the owner that this address would like to see the drop. */
  z.strictObject({ kind: z.literal('ask'), ...site, email }),
])
export type VisitQuestion = z.infer<typeof visitQuestionSchema>

export const visitAnswerSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('admitted'), admission: z.string(), ends_at: z.int(), next: z.string().optional() }),
  /** The same for every address, listed or not. */
  z.strictObject({ kind: z.literal('sent') }),
  z.strictObject({ kind: z.literal('asked') }),
  z.strictObject({
    kind: z.literal('refused'),
    reason: z.enum(['email', 'code', 'link', 'guest', 'machine', 'limited']),
    retry_after: z.int().optional(),
  }),
])
export type VisitAnswer = z.infer<typeof visitAnswerSchema>
