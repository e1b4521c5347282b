/** A mail as bytes (RFC 5322). Made from the row alone, so that a second try yields the same message. */
import MailComposer from 'nodemailer/lib/mail-composer'
import type { RenderedMail } from './templates.ts'

export interface Message {
  readonly id: string
  readonly from: string
  readonly to: string
  readonly createdAt: Date
  readonly content: RenderedMail
}

export function composeMessage({ id, from, to, createdAt, content }: Message): Promise<Buffer> {
  const composer = new MailComposer({
    from,
    to,
    subject: content.subject,
    date: createdAt,
    messageId: messageIdOf(id, from),
    // RFC 3834: nobody's holiday notice needs to answer this.
    headers: { 'Auto-Submitted': 'auto-generated' },
    alternatives: [part('text/plain', content.text), part('text/html', content.html)],
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().build()
}

/** The same for every attempt: a receiver that gets a mail twice can tell. */
export function messageIdOf(mailId: string, from: string): string {
  const domain = /@([a-z0-9.-]+)>?\s*$/i.exec(from)?.[1] ?? 'dropway.invalid'
  return `<${mailId}@${domain}>`
}

/** RFC 5322 §2.1.1 allows 998 characters a line. */
const MAX_LINE_CHARS = 900

/** As it is where that is legal, so that a link is never folded; quoted-printable otherwise. */
function part(
  type: string,
  content: string,
): { contentType: string; content: string; contentTransferEncoding?: string } {
  const isPlain = /^\p{ASCII}*$/u.test(content) && content.split('\n').every((line) => line.length <= MAX_LINE_CHARS)
  return {
    contentType: `${type}; charset=utf-8`,
    content,
    contentTransferEncoding: isPlain ? '7bit' : 'quoted-printable',
  }
}
