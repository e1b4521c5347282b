/** Addresses of the pages that links in mails lead to. The dashboard answers there. */
export const ACCOUNT_PATHS = {
  verify: '/verify',
  reset: '/reset',
  emailChange: '/email-change',
  invitation: '/invitation',
  signIn: '/signin',
  signUp: '/signup',
} as const

/** In the query, never in the path: access logs keep paths. */
export function linkTo(baseUrl: string, path: string, token: string): string {
  return `${baseUrl}${path}?token=${token}`
}
