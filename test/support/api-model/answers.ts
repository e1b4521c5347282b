/** What calls are answered with. */
export interface Expected {
  readonly status: number
  readonly error?: string
  /** Fields that the answer's body must have; lists must have the same length. */
  readonly body?: object
  /** Notes what only the service can choose (ids, random slugs), and what has changed. */
  learn?(body: never): void
}

/** Thrown by predictions: the call is refused. */
export class Refusal extends Error {
  readonly expected: Expected
  constructor(status: number, error: string) {
    super(error)
    this.expected = { status, error }
  }
}

export const refuse = {
  unauthorized: () => new Refusal(401, 'unauthorized'),
  unverified: () => new Refusal(403, 'email_not_verified'),
  invalid: () => new Refusal(400, 'invalid_request'),
  notFound: () => new Refusal(404, 'not_found'),
  forbidden: () => new Refusal(403, 'forbidden'),
  planLimit: () => new Refusal(403, 'plan_limit'),
  planFeature: () => new Refusal(403, 'plan_feature'),
  limit: () => new Refusal(403, 'limit_reached'),
  conflict: (code: string) => new Refusal(409, code),
}
