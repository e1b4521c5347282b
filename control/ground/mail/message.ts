/** A mail as bytes (RFC 5322). Made from the row alone, so that a second try yields the same message. */
import type { RenderedMail } from './letters/templates.ts'

export interface Message {
  readonly id: string
  readonly from: string
  readonly replyTo?: string | undefined
  readonly to: string
  readonly createdAt: Date
  readonly content: RenderedMail
}

export async function composeMessage({ id, from, replyTo, to, createdAt, content }: Message): Promise<Buffer> {
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer')
  const composer = new MailComposer({
    from,
    ...(replyTo === undefined ? {} : { replyTo }),
    to,
    subject: content.subject,
    date: createdAt,
    messageId: messageIdOf(id, from),
    // Otherwise the composer draws one, and a second copy would differ from the first.
    baseBoundary: id,
    // RFC 3834: no holiday notice needs to answer this.
    headers: { 'Auto-Submitted': 'auto-generated' },
    alternatives: [part('text/plain', content.text), part('text/html', content.html)],
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().build()
}

/** The same for every attempt: a receiver that gets a mail twice can tell. */
function messageIdOf(mailId: string, from: string): string {
  const domain = /@([a-z0-9.-]+)>?\s*$/i.exec(from)?.[1] ?? 'dropway.invalid'
  return `<${mailId}@${domain}>`
}

/** RFC 5322 §2.1.1 allows 998 characters a line. */
const MAX_LINE_CHARS = 900

/**
 * As it is where that is legal: a link is then never folded or escaped. Given `raw`, the
 * composer leaves a part alone; otherwise it chooses quoted-printable.
 */
function part(type: string, content: string): { raw: string } | { contentType: string; content: string } {
  const contentType = `${type}; charset=utf-8`
  const isPlain = /^\p{ASCII}*$/u.test(content) && content.split('\n').every((line) => line.length <= MAX_LINE_CHARS)
  if (!isPlain) return { contentType, content }
  const headers = [`Content-Type: ${contentType}`, 'Content-Transfer-Encoding: 7bit']
  return { raw: [...headers, '', ...content.split('\n')].join('\r\n') }
}
