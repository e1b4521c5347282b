import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { devMailRoutes } from '../../control/ground/mail/dev-routes.ts'
import { createEnqueueMail } from '../../control/ground/mail/mail.ts'
import { createMailer, type Mailer } from '../../control/ground/mail/mailer.ts'
import { createFileSink, createSmtpSink, type MailSink } from '../../control/ground/mail/sinks.ts'
import { openDatabase, transaction } from '../../control/ground/database/sql.ts'
import { DAY_MS, HOUR_MS, systemClock } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { fakeRequest } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { startSmtpServer, type Moment } from '../support/smtp-server.ts'

const SECRET_KEY = 'a secret key for tests, 32 chars or more'
const MAIL_FROM = 'Dropway <no-reply@dropway.test>'
const secrets = createSecrets(SECRET_KEY)

let database: TestDatabase
let offsetMs = 0
const clock = { now: () => Date.now() + offsetMs }
const mailers: Mailer[] = []

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.close())
beforeEach(async () => {
  offsetMs = 0
  await database.sql`delete from mails`
})
afterEach(async () => {
  for (const mailer of mailers.splice(0)) await mailer.stop()
})

function newMailer(sink: MailSink): Mailer {
  const mailer = createMailer({ sql: database.sql, sink, secrets, clock, log: silentLog, mailFrom: MAIL_FROM })
  mailers.push(mailer)
  return mailer
}

const enqueue = createEnqueueMail({ secrets, clock })
const verify = { until: new Date(0), drops: [] }
const enqueueTo = (to: string, eventKey = to) =>
  transaction(database.sql, (sql) =>
    enqueue(sql, {
      eventKey,
      to,
      template: 'verify',
      data: { ...verify, link: 'https://dropway.test/verify?token=secret' },
    }),
  )
const unsent = async () => (await database.sql`select 1 from mails where sent_at is null`).length

test('says how many people wait for a mail of before, and forgets them when it has left', async () => {
  const smtp = await startSmtpServer()
  const mailer = newMailer(createSmtpSink(smtp.url))
  for (const [to, event] of [
    ['a@example.com', 'one'],
    ['a@example.com', 'two'],
    ['b@example.com', 'three'],
  ] as const)
    await enqueueTo(to, event)
  expect(await mailer.lateRecipients(new Date(clock.now() - HOUR_MS))).toBe(0)
  expect(await mailer.lateRecipients(new Date(clock.now() + 1000))).toBe(2)
  await mailer.deliverDue()
  expect(await mailer.lateRecipients(new Date(clock.now() + 1000))).toBe(0)
  await smtp.close()
})

describe('a mail server', () => {
  test('gets each mail once, with two mailers racing, soon after the commit', async () => {
    const smtp = await startSmtpServer()
    newMailer(createSmtpSink(smtp.url)).start()
    newMailer(createSmtpSink(smtp.url)).start()
    const recipients = Array.from({ length: 20 }, (_, index) => `person${index}@example.com`)
    await Promise.all(recipients.map((to) => enqueueTo(to)))
    await expect.poll(unsent).toBe(0)
    expect(smtp.received.map((mail) => mail.to).toSorted()).toEqual(recipients.toSorted())
    const { message } = smtp.received[0]!
    expect(message.subject).toBe('Verify your e-mail address')
    expect(message.text).toContain('https://dropway.test/verify?token=secret')
    expect(message.html).toContain('href="https://dropway.test/verify?token=secret"')
    expect(await database.sql`select 1 from mails where sealed <> ''`).toHaveLength(0)
    await smtp.close()
  })

  test('gets one mail per event, and none of a transaction that failed', async () => {
    const smtp = await startSmtpServer()
    await enqueueTo('once@example.com', 'the event')
    await enqueueTo('once@example.com', 'the event')
    const failed = transaction(database.sql, async (sql) => {
      await enqueue(sql, {
        eventKey: 'rolled back',
        to: 'never@example.com',
        template: 'account_deleted',
        data: { email: 'x' },
      })
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    await newMailer(createSmtpSink(smtp.url)).deliverDue()
    expect(smtp.received.map((mail) => mail.to)).toEqual(['once@example.com'])
    await smtp.close()
  })

  test('that is busy is asked again later, with the same Message-ID; one that refuses for good is not', async () => {
    const smtp = await startSmtpServer()
    const mailer = newMailer(createSmtpSink(smtp.url))
    await enqueueTo('later@example.com')
    smtp.answerWith(Object.assign(new Error('busy'), { responseCode: 451 }))
    await mailer.deliverDue()
    expect(smtp.received).toHaveLength(0)
    smtp.answerWith(undefined)
    expect(await mailer.deliverDue()).toBe(0)
    offsetMs += HOUR_MS
    await mailer.deliverDue()
    const [row] = await database.sql<{ id: string }[]>`select id from mails`
    expect(smtp.received.map((mail) => mail.messageId)).toEqual([`<${row!.id}@dropway.test>`])

    await enqueueTo('refused@example.com')
    smtp.answerWith(Object.assign(new Error('no such mailbox'), { responseCode: 550 }))
    await mailer.deliverDue()
    offsetMs += 10 * DAY_MS
    expect(await mailer.deliverDue()).toBe(0)
    const [failed] =
      await database.sql`select failed_at, sealed, last_error from mails where recipient = 'refused@example.com'`
    expect(failed).toMatchObject({
      failed_at: expect.any(Date),
      sealed: '',
      last_error: expect.stringContaining('no such mailbox'),
    })
    await smtp.close()
  })

  test('that is down for days loses nothing before the last attempt', async () => {
    await enqueueTo('patient@example.com')
    // No one may listen there but the system, which does not.
    const mailer = newMailer(createSmtpSink('smtp://127.0.0.1:1'))
    let attempts = 0
    for (; attempts < 20 && (await mailer.deliverDue()) > 0; attempts++) offsetMs += DAY_MS
    expect(attempts).toBe(10)
    expect(await database.sql`select 1 from mails where failed_at is not null`).toHaveLength(1)
  })
})

describe('a control killed while it sends', () => {
  const children: ChildProcess[] = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })

  function startMailerProcess(smtpUrl: string): ChildProcess {
    const script = fileURLToPath(new URL('../support/mailer-process.ts', import.meta.url))
    const child = spawn(process.execPath, [script, database.url, smtpUrl, SECRET_KEY], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    children.push(child)
    return child
  }

  test.each<[Moment, number]>([
    ['recipient', 1],
    ['received', 2],
    ['accepted', 2],
  ])('at "%s": no mail is lost, and a second copy is the same message', async (killAt, mostCopies) => {
    let victim: ChildProcess | undefined
    const smtp = await startSmtpServer(async ({ moment, to }) => {
      if (moment !== killAt || to !== 'victim@example.com' || !victim) return
      const dying = victim
      victim = undefined
      const gone = once(dying, 'exit')
      dying.kill('SIGKILL')
      await gone
    })
    // Only the victim runs while its mail is due, so that it is the one that sends it.
    victim = startMailerProcess(smtp.url)
    const gone = once(victim, 'exit')
    await enqueueTo('victim@example.com')
    await gone

    startMailerProcess(smtp.url)
    startMailerProcess(smtp.url)
    const others = Array.from({ length: 8 }, (_, index) => `after${index}@example.com`)
    await Promise.all(others.map((to) => enqueueTo(to)))
    await expect.poll(unsent).toBe(0)
    const copies = smtp.received.filter((mail) => mail.to === 'victim@example.com')
    expect(copies.length).toBeGreaterThanOrEqual(1)
    expect(copies.length).toBeLessThanOrEqual(mostCopies)
    const [row] = await database.sql<{ id: string }[]>`select id from mails where recipient = 'victim@example.com'`
    expect(new Set(copies.map((mail) => mail.messageId))).toEqual(new Set([`<${row!.id}@dropway.test>`]))
    expect(
      smtp.received
        .filter((mail) => !copies.includes(mail))
        .map((mail) => mail.to)
        .toSorted(),
    ).toEqual(others)
    for (const child of children.splice(0)) child.kill('SIGKILL')
    await smtp.close()
  })
})

test('a sender that loses Postgres after the server took its mail: the next one sends the same bytes again', async () => {
  const smtp = await startSmtpServer()
  const dying = openDatabase({ url: database.url, maxConnections: 4 })
  const [{ name }] = await database.sql<[{ name: string }]>`select current_database() as name`
  const delivered = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const real = createSmtpSink(smtp.url)
  const sink: MailSink = {
    async deliver(message) {
      await real.deliver(message)
      delivered.resolve()
      await goOn.promise
    },
    close: () => real.close(),
  }
  await enqueueTo('twice@example.com')
  const mailer = createMailer({ sql: dying, sink, secrets, clock, log: silentLog, mailFrom: MAIL_FROM, senders: 1 })
  const lost = expect(mailer.deliverDue()).rejects.toThrow()
  await delivered.promise
  // Another sender does not touch the mail while the first one holds its row.
  const other = newMailer(createSmtpSink(smtp.url))
  expect(await other.deliverDue()).toBe(0)
  // Its connection ends while it notes that the mail has gone: until then that waits for the table.
  await database.sql.begin(async (tx) => {
    await tx`lock table mails in share mode`
    goOn.resolve()
    // In a transaction of its own: within one, Postgres goes on showing what it showed first.
    const end = async (): Promise<number> =>
      (
        await database.sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = ${name} and state = 'active' and wait_event_type = 'Lock' and pid <> pg_backend_pid()`
      ).length
    await expect.poll(end).toBe(1)
    await lost
  })
  await expect.poll(() => other.deliverDue()).toBe(1)
  expect(smtp.received.map((mail) => mail.to)).toEqual(['twice@example.com', 'twice@example.com'])
  expect(new Set(smtp.received.map((mail) => mail.messageId)).size).toBe(1)
  expect(smtp.received[1]!.source).toBe(smtp.received[0]!.source)
  await dying.end({ timeout: 0 })
  await smtp.close()
})

describe('without a mail server', () => {
  let folder: string
  beforeEach(async () => {
    folder = path.join(await mkdtemp(path.join(os.tmpdir(), 'dropway-mail-')), 'mail')
  })
  afterEach(() => rm(path.dirname(folder), { recursive: true, force: true }))

  test('mails are files that only we can read, listed and shown at /dev/mail', async () => {
    const ip = '127.0.0.1'
    const headers = { host: 'localhost:8443' }
    const [list, show, showHtml] = devMailRoutes({ folder, serviceHost: 'localhost' })
    expect((await list!.handle(fakeRequest({ ip, headers }))).body).toContain('Nothing yet')
    const enqueueAt = createEnqueueMail({ secrets, clock: systemClock })
    await enqueueAt(database.sql, {
      eventKey: 'a',
      to: 'a@example.com',
      template: 'verify',
      data: { ...verify, link: 'https://dropway.test/verify?token=abc' },
    })
    await enqueueAt(database.sql, {
      eventKey: 'b',
      to: 'b@example.com',
      template: 'invitation',
      data: {
        link: 'https://dropway.test/invitation?token=def',
        until: new Date(),
        organisation: 'Zoë & <Söhne>',
        inviter: 'z@example.com',
        role: 'member',
      },
    })
    expect(await newMailer(createFileSink(folder)).deliverDue()).toBe(2)

    const ids = await database.sql<{ id: string; event_key: string }[]>`select id, event_key from mails`
    const fileOf = (key: string): string => `${ids.find(({ event_key }) => event_key === key)!.id}.eml`
    expect((await readdir(folder)).toSorted()).toEqual([fileOf('a'), fileOf('b')].toSorted())
    expect((await stat(path.join(folder, fileOf('a')))).mode & 0o777).toBe(0o600)
    expect(await readFile(path.join(folder, fileOf('a')), 'utf8')).toContain('\nhttps://dropway.test/verify?token=abc')

    const listed = (await list!.handle(fakeRequest({ ip, headers }))).body as string
    expect(listed.indexOf('Join Zoë &amp; &lt;Söhne&gt; on Dropway')).toBeGreaterThan(0)
    const request = fakeRequest({ ip, headers, params: { id: fileOf('b').replace('.eml', '') } })
    const shown = (await show!.handle(request)).body
    expect(shown).toContain('publish with Zoë &amp; &lt;Söhne&gt; on Dropway, as a member')
    expect(shown).toContain('<a href="https://dropway.test/invitation?token=def">')
    expect((await showHtml!.handle(request)).body).toContain('Zo&#235; &amp; &lt;S&#246;hne&gt;')
    for (const id of ['../secret', 'mail_none', '']) {
      await expect(
        Promise.resolve().then(() => show!.handle(fakeRequest({ ip, headers, params: { id } }))),
      ).rejects.toMatchObject({
        status: 404,
      })
    }
  })

  const HERE = { host: 'localhost:8443' }
  test.each([
    ['the machine itself', '127.0.0.1', HERE, 200],
    ['the machine itself, through the edge', '::1', { ...HERE, 'x-forwarded-for': '::1' }, 200],
    ['the machine itself, as a mapped address', '::ffff:127.0.0.1', HERE, 200],
    ['a visitor', '203.0.113.7', HERE, 404],
    ['a neighbour', '192.168.1.20', HERE, 404],
    ['a visitor by IPv6', '2001:db8::1', HERE, 404],
    ['a stranger’s name that points here', '127.0.0.1', { host: 'evil.example:8443' }, 404],
    ['a longer name', '127.0.0.1', { host: 'localhost.evil.example' }, 404],
    ['no name', '127.0.0.1', {}, 404],
    ['a relay on this machine that says so', '127.0.0.1', { ...HERE, via: '1.1 relay' }, 404],
    ['… in the standard way', '127.0.0.1', { ...HERE, forwarded: 'for=203.0.113.7' }, 404],
    ['… by its own header', '127.0.0.1', { ...HERE, 'x-real-ip': '203.0.113.7' }, 404],
    ['… in front of the edge', '127.0.0.1', { ...HERE, 'dropway-relayed': '1' }, 404],
    ['two hops', '127.0.0.1', { ...HERE, 'x-forwarded-for': '127.0.0.1, 127.0.0.1' }, 404],
  ])('/dev/mail for %s', async (_, ip, headers, status) => {
    for (const route of devMailRoutes({ folder, serviceHost: 'localhost' })) {
      const answer = Promise.resolve().then(() => route.handle(fakeRequest({ ip, headers, params: { id: 'mail_1' } })))
      const given = await answer.then(
        (reply) => reply.status,
        (error: { message: string }) => (error.message.includes('address') ? 404 : 200),
      )
      expect(given).toBe(status)
    }
  })
})
