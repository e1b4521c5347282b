/** What viewers get by mail: codes, and links at the drop's own address. */
import { mailsOf } from './mailbox.ts'
import { until } from './processes.ts'
import type { Stack } from './stack.ts'

export interface ViewerMail {
  readonly subject: string
  readonly code: string | undefined
  /** The link behind the button. */
  readonly link: string | undefined
  /** All of it, both forms. */
  readonly text: string
}

/** Mails to an address, the oldest first. */
export function viewerMails(stack: Pick<Stack, 'dataDir'>, email: string): ViewerMail[] {
  return mailsOf(stack, email).map(({ subject, text, html }) => ({
    subject,
    code: /\b(\d{6}) is your code/.exec(subject)?.[1],
    link: /https:\/\/\S+(?:\/\.dropway\/enter\/|\/access-request\?token=)\S+/.exec(text)?.[0],
    text: `${text}\n${html}`,
  }))
}

/** Waits until so many mails have come to the address; returns the last. */
export async function viewerMail(stack: Pick<Stack, 'dataDir'>, email: string, count = 1): Promise<ViewerMail> {
  await until(() => viewerMails(stack, email).length >= count, `mail ${count} for ${email}`)
  return viewerMails(stack, email)[count - 1]!
}
