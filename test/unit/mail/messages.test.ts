import { describe, expect, test } from 'vitest'
import { DAY_MS } from '../../../shared/running/clock.ts'
import { readMessage } from '../../../control/ground/mail/eml.ts'
import { composeMessage } from '../../../control/ground/mail/message.ts'
import { verdictOn } from '../../../control/ground/mail/rules.ts'
import { HOUSE_LOOK } from '../../../shared/pages/look.ts'
import { renderMail, type MailData, type MailTemplate } from '../../../control/ground/mail/letters/templates.ts'

const at = new Date('2026-03-01T09:30:00Z')
const link = 'https://dropway.test/somewhere?token=abc_DEF-123'

const clocks = { drops: [{ name: 'cv', url: 'https://cv.dropway.test', at }], idleMs: 30 * DAY_MS, signInLink: link }

const samples: { [Name in MailTemplate]: MailData[Name] } = {
  verify: { link, until: at, drops: [{ name: 'cv', url: 'https://cv.dropway.test' }] },
  sign_up_again: { signInLink: 'https://dropway.test/signin', resetLink: 'https://dropway.test/reset' },
  reset: { link, until: at },
  email_change: { link, until: at },
  email_changed: { newEmail: 'new@example.com' },
  password_changed: { resetLink: link, tokensAndAppsEnded: true },
  invitation: { link, until: at, organisation: 'Acme', inviter: 'ada@example.com', role: 'admin' },
  second_factor_changed: { what: 'on', link },
  factor_recovery: { at, by: 'session', link },
  factor_recovery_stopped: { by: 'session', link },
  new_device: { device: 'Firefox on Linux', ip: '203.0.113.7', at, link },
  sign_up_invitation: { link, until: at },
  token_ending: { name: 'Deploy from CI', at, link },
  expiring: clocks,
  expired: clocks,
  removal: clocks,
  paused: {
    plan: 'Plus',
    organisation: 'Acme',
    at,
    drops: clocks.drops,
    domains: ['www.example.com'],
    kept: 3,
    chooseLink: link,
  },
  unverified: { email: 'ada@example.com', at, drops: clocks.drops, link },
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
  domain_stopped: {
    domain: 'www.example.com',
    url: 'https://www.example.com',
    visitorsSee: 'Visitors see what 192.0.2.1 shows them.',
    until: at,
    link,
  },
  domain_renewal: { domain: 'www.example.com', endsAt: at, cause: 'CAA record forbids issuance', link },
  domain_moved_away: { domain: 'www.example.com', link },
  domain_moved_here: { domain: 'www.example.com', link },
  webhook_off: { url: 'https://hooks.example.com/x', since: at, link },
  viewer_invitation: {
    link,
    until: at,
    drop: 'The plan',
    inviter: 'ada@example.com',
    isReminder: false,
    reviewLink: link,
  },
  viewer_code: { code: '048213', link, until: at, drop: 'The plan' },
  access_request: { link, email: 'grace@example.com', drop: 'The plan' },
  thread_mention: { link, drop: 'The plan', name: 'Ada', body: 'Is this right, @grace@example.com?' },
  thread_digest: { link, drop: 'The plan', messages: [{ name: 'Ada', page: '/', body: 'The price is old.' }], more: 2 },
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

test('answers go to the address that the operator set, and nowhere else otherwise', async () => {
  const content = renderMail('takedown', samples.takedown)
  const message = {
    id: 'mail_1',
    from: 'Dropway <no-reply@dropway.test>',
    to: 'ada@example.com',
    createdAt: at,
    content,
  }
  const answered = await composeMessage({ ...message, replyTo: 'People <people@dropway.test>' })
  expect(answered.toString()).toMatch(/^Reply-To: People <people@dropway\.test>\r$/m)
  expect((await composeMessage(message)).toString()).not.toMatch(/^Reply-To/m)
})

describe('every mail', () => {
  test('an instance with a name of its own signs every letter with it, and says no other', () => {
    const look = { ...HOUSE_LOOK, name: 'Acme Pages' }
    for (const name of Object.keys(samples) as MailTemplate[]) {
      const { subject, text, html } = renderMail(name, samples[name] as never, look)
      expect(`${subject}\n${text}\n${html}`, name).not.toContain('Dropway')
      expect(text, name).toContain('Acme Pages')
    }
  })

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
        // On a line of its own, unfolded: readers of the raw mail can copy it.
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

describe('a mail about what is going to happen', () => {
  const names = ['expiring', 'expired', 'removal', 'paused', 'domain_stopped', 'unverified'] as const
  test.each(names)('%s names the exact date and the address, and has one button', (name) => {
    const { text, html } = renderMail(name, samples[name] as never)
    const address = name === 'domain_stopped' ? 'https://www.example.com' : 'https://cv.dropway.test'
    for (const part of [text, html]) {
      expect(part).toContain('1 March 2026, 09:30 UTC')
      expect(part).toContain(address)
      expect(part).toContain(link)
    }
    expect(html.match(/class="dw-button"/g)).toHaveLength(1)
  })

  test('several drops are counted, and each has its own date', () => {
    const drops = [1, 2].map((day) => ({
      name: `d${day}`,
      url: `https://d${day}.dropway.test`,
      at: new Date(Date.UTC(2026, 2, day, 8)),
    }))
    const { subject, text } = renderMail('expiring', { drops, idleMs: 14 * DAY_MS, signInLink: link })
    expect(subject).toBe('2 of your drops expire, the first on 1 March 2026')
    expect(text).toContain('for 14 days')
    expect(text).toContain('* d2\n  https://d2.dropway.test\n  online until 2 March 2026, 08:00 UTC')
  })
})

describe('numbers and persons agree', () => {
  const several = { ...clocks, drops: [...clocks.drops, { ...clocks.drops[0]!, name: 'blog' }] }
  test.each(['expiring', 'expired', 'removal'] as const)('%s, of one drop and of two', (name) => {
    const [one, two] = [renderMail(name, clocks), renderMail(name, several)]
    expect(one.subject).toMatch(/^Your drop /)
    expect(two.subject).toMatch(/^2 of your drops /)
    expect(one.text).not.toMatch(/\b(?:they|them|these)\b/i)
    expect(two.text).not.toMatch(/\b(?:it is|bring it|keep it|this drop)\b/i)
  })

  test('drops of one day need no first one', () => {
    expect(renderMail('expiring', several).subject).toBe('2 of your drops expire on 1 March 2026')
  })

  test('a plan that ends with one domain and no drop', () => {
    const { subject, text } = renderMail('paused', { ...samples.paused, drops: [] })
    expect([subject, text]).toEqual([
      'Dropway Plus has ended: 1 domain is paused',
      expect.stringContaining('Visitors of this address'),
    ])
  })
})

test('names cannot break out of a subject, a header or the markup', async () => {
  const organisation = 'Evil\r\nBcc: x@example.com <script>alert(1)</script> Ünïcode 🎉'
  const mail = renderMail('invitation', { link, until: at, organisation, inviter: 'ada@example.com', role: 'member' })
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
    ['a mailbox that is refused in general', { code: 'EENVELOPE', responseCode: 500 }, 0, 'give_up'],
    ['a mailbox without a reason', { code: 'EENVELOPE' }, 0, 'retry'],
    ['an answer that no server may give', { code: 'EENVELOPE', responseCode: 600 }, 0, 'retry'],
    ['too many attempts', { code: 'ECONNECTION' }, 9, 'give_up'],
  ])('%s', (_, error, attempts, kind) => {
    expect(verdictOn(error, attempts).kind).toBe(kind)
  })

  test('a restart costs seconds, an outage hours, and after two days no one waits any more', () => {
    const pauses = Array.from({ length: 9 }, (_, attempts) => verdictOn(new Error('down'), attempts)).map((verdict) =>
      verdict.kind === 'retry' ? verdict.delayMs : 0,
    )
    const minutes = pauses.map((pause) => pause / 60_000)
    expect(minutes).toEqual([5 / 60, 0.5, 2, 10, 30, 2 * 60, 6 * 60, 12 * 60, 24 * 60])
  })
})
