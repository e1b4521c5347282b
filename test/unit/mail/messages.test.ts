import { describe, expect, test } from 'vitest'
import { readMessage } from '../../../control/mail/eml.ts'
import { composeMessage } from '../../../control/mail/message.ts'
import { verdictOn } from '../../../control/mail/rules.ts'
import { renderMail, type MailData, type MailTemplate } from '../../../control/mail/templates.ts'

const at = new Date('2026-03-01T09:30:00Z')
const link = 'https://dropway.test/somewhere?token=abc_DEF-123'

const samples: { [Name in MailTemplate]: MailData[Name] } = {
  verify: { link },
  reset: { link },
  email_change: { link },
  email_changed: { newEmail: 'new@example.com' },
  password_changed: { resetLink: link, tokensAndAppsEnded: true },
  invitation: { link, organisation: 'Acme', inviter: 'ada@example.com', role: 'admin' },
  expiring: { days: 7, drops: [{ name: 'cv', url: 'https://cv.dropway.test', expiresAt: at }], signInLink: link },
  receipt: { plan: 'Plus', amount: 'EUR 12.00', paidAt: at, periodEnd: at, invoiceLink: link, billingLink: link },
  past_due: { plan: 'Plus', amount: 'EUR 12.00', until: at, billingLink: link },
  organisation_received: {
    organisation: 'Acme',
    from: 'bob@example.com',
    bill: { plan: 'Plus', until: at },
    billingLink: link,
    organisationLink: link,
  },
  organisation_handed_over: { organisation: 'Acme', to: 'ada@example.com', bill: { plan: 'Plus', until: at } },
  takedown: { url: 'https://x.dropway.test', reason: 'phishing', contact: 'https://dropway.test/report' },
  account_deleted: { email: 'ada@example.com' },
  domain_stopped: { domain: 'www.example.com', visitorsSee: 'Visitors see what 192.0.2.1 shows them.', link },
  domain_renewal: { domain: 'www.example.com', endsAt: at, cause: 'CAA record forbids issuance', link },
  domain_moved_away: { domain: 'www.example.com', link },
  domain_moved_here: { domain: 'www.example.com', link },
}

const compose = async (content: ReturnType<typeof renderMail>) =>
  (
    await composeMessage({
      id: 'mail_1',
      from: 'Dropway <no-reply@dropway.test>',
      to: 'ada@example.com',
      createdAt: at,
      content,
    })
  ).toString()

describe('every mail', () => {
  test.each(Object.keys(samples) as MailTemplate[])(
    '%s has a subject and the same words in both parts',
    async (name) => {
      const mail = renderMail(name, samples[name] as never)
      const source = await compose(mail)
      const message = readMessage(source)
      expect(message.subject).toBe(mail.subject)
      expect(message.to).toBe('ada@example.com')
      expect(message.text.trim()).toBe(mail.text.trim())
      expect(message.html.trim()).toBe(mail.html.trim())
      expect(source).toMatch(/^Auto-Submitted: auto-generated\r$/m)
      expect(source).toContain('\r\nMessage-ID: <mail_1@dropway.test>\r\n')
      if ('link' in samples[name]) {
        // On a line of its own, unfolded: whoever reads the raw mail can copy it.
        expect(source).toContain(`\r\n${link}\r\n`)
        expect(mail.html).toContain(`href="${link}"`)
      }
    },
  )

  test('is ASCII where the data is', () => {
    for (const name of Object.keys(samples) as MailTemplate[]) {
      const { subject, text, html } = renderMail(name, samples[name] as never)
      expect(subject + text + html).toMatch(/^\p{ASCII}*$/u)
    }
  })
})

test('the last warning says tomorrow, and counts', () => {
  const drops = [1, 2].map((number) => ({ name: `d${number}`, url: `https://d${number}.dropway.test`, expiresAt: at }))
  const { subject, text } = renderMail('expiring', { days: 1, drops, signInLink: link })
  expect(subject).toBe('2 of your drops expire tomorrow')
  expect(text).toContain('d2: https://d2.dropway.test (until 1 March 2026, 09:30 UTC)')
})

test('names cannot break out of a subject, a header or the markup', async () => {
  const organisation = 'Evil\r\nBcc: x@example.com <script>alert(1)</script> Ünïcode 🎉'
  const mail = renderMail('invitation', { link, organisation, inviter: 'ada@example.com', role: 'member' })
  const source = await compose(mail)
  expect(source.split('\r\n\r\n')[0]).not.toMatch(/^Bcc:/im)
  expect(mail.html).not.toContain('<script>')
  expect(mail.html).toMatch(/^\p{ASCII}*$/u)
  const message = readMessage(source)
  expect(message.subject).toBe('Join Evil Bcc: x@example.com <script>alert(1)</script> Ünïcode 🎉 on Dropway')
  expect(message.text).toContain('Ünïcode 🎉')
})

describe('after a failure', () => {
  test.each([
    ['a broken connection', { code: 'ECONNECTION' }, 0, 'retry'],
    ['a busy server', { code: 'EMESSAGE', responseCode: 451 }, 0, 'retry'],
    ['a wrong log-in of ours', { code: 'EAUTH', responseCode: 535 }, 3, 'retry'],
    ['a mailbox that does not exist', { code: 'EENVELOPE', responseCode: 550 }, 0, 'give_up'],
    ['a message that is refused', { code: 'EMESSAGE', responseCode: 554 }, 0, 'give_up'],
    ['too many attempts', { code: 'ECONNECTION' }, 9, 'give_up'],
  ])('%s', (_, error, attempts, kind) => {
    expect(verdictOn(error, attempts).kind).toBe(kind)
  })

  test('the pauses grow', () => {
    const pauses = Array.from({ length: 9 }, (_, attempts) => verdictOn(new Error('down'), attempts)).map((verdict) =>
      verdict.kind === 'retry' ? verdict.delayMs : 0,
    )
    expect(pauses).toEqual(pauses.toSorted((a, b) => a - b))
  })
})
