/** Pages that show a publisher's text inside ours: framed by us alone, and without any right of our origin. */
import { html as htmlReply } from '../../../ground/http/reply.ts'
import type { Reply } from '../../../ground/http/route.ts'

export type SandboxKind =
  /** The text as a visitor would get it: its scripts run, but as a stranger. */
  | 'scripts'
  /** Our own template around their words: nothing needs to run. */
  | 'still'

const POLICIES: Readonly<Record<SandboxKind, string>> = {
  scripts: "sandbox allow-scripts allow-forms; frame-ancestors 'self'",
  still: "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; frame-ancestors 'self'",
}

export function sandboxed(kind: SandboxKind, body: string, status = 200): Reply {
  return htmlReply(status, body, {
    'content-security-policy': POLICIES[kind],
    'x-frame-options': 'SAMEORIGIN',
    'x-content-type-options': 'nosniff',
    'x-robots-tag': 'noindex',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
  })
}
