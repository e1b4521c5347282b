/** Pages that show a publisher's text inside ours: framed by us alone, and without any right of our origin. */
import type { ApiError } from '../../../../shared/contracts/errors.ts'
import type { Content } from '../../../../shared/pages/html.ts'
import { createStandalonePages } from '../../../../shared/pages/shell.ts'
import { html as htmlReply } from '../../../ground/http/reply.ts'
import type { Reply } from '../../../ground/http/route.ts'
import { problemLead } from './handlers.ts'
import type { DashboardServices } from './services.ts'

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

/** What a frame says where there is nothing to show in it. */
export interface FrameNotes {
  say(heading: string, lead: Content, status?: number): Reply
  /** A refusal is said in the frame too: our other pages are not shown in frames, and browsers would say so instead. */
  refuse(problem: ApiError): Reply
}

export function createFrameNotes({ look, baseUrl }: Pick<DashboardServices['config'], 'look' | 'baseUrl'>): FrameNotes {
  const note = createStandalonePages(look)
  const say = (heading: string, lead: Content, status?: number): Reply =>
    sandboxed('still', note({ title: heading, heading, lead, home: baseUrl, footer: '' }).body, status)
  return {
    say,
    refuse(problem) {
      const { headers, ...refusal } = say('No preview', problemLead(problem), problem.status)
      return { ...refusal, headers: { ...headers, ...problem.headers } }
    },
  }
}
