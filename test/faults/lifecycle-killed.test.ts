/**
 * Two controls do the work of the lifecycle at once and one of them is killed with -9 in the middle: of a move, or of a
 * mail. Every move is made once, and every mail reaches the mail server: once, unless its sender was killed before it
 * could note that the server took it; then a second time, with the same Message-ID.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { fileForm } from '../support/api.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { startPostgresPort, watchMoves, type Move, type MoveKind, type MoveWatch } from '../support/moves.ts'
import { startSmtpServer, type Delivery } from '../support/smtp-server.ts'
import { startStripeStandIn, type StripeStandIn } from '../support/stripe-stand-in.ts'

const OWNERS = 10
const STRANGERS = 10
const VICTIM = 'control-victim'
const SURVIVOR = 'control-survivor'
const CONTROLS = [VICTIM, SURVIVOR]
const PASSWORD = 'correct horse battery'
/** A mail server takes a moment for each mail, so that two senders meet. */
const MAIL_MS = 20
const JOB_INTERVAL_MS = 200
/** A control sends as many at a time: those may come again when it is killed. */
const MAILS_AT_ONCE = 2

interface Drop {
  readonly id: string
  readonly slug: string
}

interface Owner {
  readonly email: string
  readonly browser: FormBrowser
  /** Ends in a week, and tomorrow: a mail each. */
  readonly week: Drop
  readonly day: Drop
}

/** What is due in one round. */
interface Due {
  readonly mails: readonly string[]
  readonly moves: readonly string[]
}

let fleet: Fleet
let stripe: StripeStandIn
let smtp: Awaited<ReturnType<typeof startSmtpServer>>
let port: Awaited<ReturnType<typeof startPostgresPort>>
let watch: MoveWatch
let owners: Owner[]
let onDelivery: (delivery: Delivery) => void | Promise<void> = () => {}
let rounds = 0

beforeAll(async () => {
  smtp = await startSmtpServer(async (delivery) => {
    if (delivery.moment === 'received') await sleep(MAIL_MS)
    await onDelivery(delivery)
  })
  stripe = await startStripeStandIn()
  fleet = await startFleet({
    edges: 1,
    controls: 2,
    env: { ...stripe.env, JOB_INTERVAL: `${JOB_INTERVAL_MS}ms`, TRUSTED_PROXIES: '127.0.0.1,::1' },
    async controlEnv(index, postgres) {
      port ??= await startPostgresPort(postgres.url)
      const name = CONTROLS[index]!
      return { DATABASE_URL: port.urlFor(name), SMTP_URL: `${smtp.url}/?name=${name}` }
    },
  })
  watch = await watchMoves(fleet.postgres.url)
  owners = await Promise.all(Array.from({ length: OWNERS }, (_, index) => newOwner(index)))
})

afterAll(async () => {
  await watch?.close()
  await fleet?.stop()
  await Promise.all([port?.stop(), smtp?.close(), stripe?.stop()])
})

async function newOwner(index: number): Promise<Owner> {
  const email = `owner${index}@example.com`
  const browser = new FormBrowser(fleet, `198.51.100.${index + 1}`)
  expect((await browser.send('/signup', { email, password: PASSWORD })).status).toBe(303)
  const verification = await vi.waitUntil(() => smtp.received.find((mail) => mail.to === email), { timeout: 15_000 })
  const link = new URL(/https:\S+\/verify\S+/.exec(verification.message.text)![0])
  expect((await browser.confirm(link.pathname + link.search)).status).toBe(200)
  return { email, browser, week: await newDrop(browser), day: await newDrop(browser) }
}

async function newDrop(browser: FormBrowser): Promise<Drop> {
  const made = await browser.api('/sites', { json: {} })
  const drop = made.json<Drop>()
  const uploaded = await browser.api(`/sites/${drop.id}/upload`, { body: fileForm('a.html', '<h1>here</h1>') })
  expect([made.status, uploaded.status]).toEqual([201, 201])
  return drop
}

async function strangersDrop(): Promise<Drop> {
  const made = await fleet.fetch('/api/v1/drops', { body: fileForm('a.html', '<h1>here</h1>') })
  expect(made.status).toBe(201)
  return made.json<Drop>()
}

async function organisationOf({ email }: Owner): Promise<string> {
  const [row] = await watch.sql<{ id: string }[]>`
    select o.id from organisations o join users u on u.id = o.owner_id where u.email = ${email}`
  return row!.id
}

/**
 * Instead of the controls' clocks the drops' are moved, in one transaction, while the survivor is frozen: as if no one
 * had signed in for long and each had been published a whole period before its end.
 */
async function makeDueForVictim(): Promise<Due> {
  const old = await Promise.all(owners.map(({ browser }) => newDrop(browser)))
  const anonymous = await Promise.all(Array.from({ length: STRANGERS }, strangersDrop))
  await freezeSurvivor()
  const round = ++rounds
  await watch.sql.begin(async (sql) => {
    /** A clock that was warned about is never warned about again: each round has its own. */
    const setClock = async (drops: readonly Drop[], clock: string, expired: string | null = null) => {
      const ids = drops.map(({ id }) => id)
      await sql`
        update sites set expires_at = date_trunc('milliseconds', now()) + ${clock}::interval + ${round} * interval '1 minute',
                         expired_at = now() + ${expired}::interval, next_notice_at = now()
        where id = any(${ids})`
      await sql`
        update sites set published_at = expires_at - interval '30 days', clock_started_at = expires_at - interval '30 days'
        where id = any(${ids}) and org_id is not null`
    }
    await sql`update users set last_sign_in_at = now() - interval '90 days'`
    await setClock(
      owners.map(({ week }) => week),
      '6 days',
    )
    await setClock(
      owners.map(({ day }) => day),
      '12 hours',
    )
    await setClock(old, '-31 days', '-31 days')
    await sql`
      insert into drop_notices (site_id, kind, clock, acts_at, sent_at)
      select id, kind, expires_at, now(), now() from sites, unnest(array['expired', 'removal']) as kind
      where id = any(${old.map(({ id }) => id)})`
    await setClock(anonymous, '-1 hour')
  })
  return {
    mails: owners.flatMap(({ email }) => [`${email} in a week`, `${email} tomorrow`]).toSorted(),
    moves: [...old.map(({ id }) => `removed ${id}`), ...anonymous.map(({ id }) => `expired ${id}`)].toSorted(),
  }
}

const victim = () => fleet.controls[0]!
const survivor = () => fleet.controls[1]!
const movesOf = (moves: readonly Move[], control: string) => moves.filter((move) => move.control === control)
const unsent = async () => (await watch.sql`select 1 from mails where sent_at is null`).length

async function killVictim(): Promise<void> {
  victim().kill('SIGKILL')
  await victim().exited
}

async function madeMoves(): Promise<string[]> {
  return (await watch.moves()).map(({ kind, site_id }) => `${kind} ${site_id}`).toSorted()
}

/** `from`: mails that had arrived before the round. */
function arrivedMails(from: number): string[] {
  return smtp.received
    .slice(from)
    .map(({ to, message }) => {
      const owner = owners.find(({ email }) => email === to)!
      return `${to} ${message.text.includes(owner.week.slug) ? 'in a week' : ''}${message.text.includes(owner.day.slug) ? 'tomorrow' : ''}`
    })
    .toSorted()
}

const severalRuns = () => sleep(3 * JOB_INTERVAL_MS)

/** Every move once, as the database counted it and visitors see it; every mail at least once, as the server received it. */
async function expectAllOnce(due: Due, mailsBefore: number): Promise<void> {
  await expect
    .poll(async () => (await madeMoves()).length, { timeout: 20_000 })
    .toBeGreaterThanOrEqual(due.moves.length)
  await expect.poll(() => new Set(arrivedMails(mailsBefore)).size).toBe(due.mails.length)
  await expect.poll(unsent).toBe(0)
  // What is done twice is done in the next runs of the jobs.
  await fleet.startControl(0)
  await severalRuns()
  expect(await madeMoves()).toEqual(due.moves)
  const arrived = arrivedMails(mailsBefore)
  expect([...new Set(arrived)]).toEqual(due.mails)
  expect(arrived.length).toBeLessThanOrEqual(due.mails.length + MAILS_AT_ONCE)
  const messageIds = smtp.received.slice(mailsBefore).map(({ messageId }) => messageId)
  expect(new Set(messageIds).size).toBe(due.mails.length)
  const removed = due.moves.filter((move) => move.startsWith('removed')).map((move) => move.split(' ')[1]!)
  const audited = await watch.sql`
    select subject from audit_log where action = 'site.removed' and subject = any(${removed}) order by subject`
  expect(audited.map((entry) => entry['subject'])).toEqual(removed.toSorted())
}

async function expectVisitorsSee(status: number, moves: readonly string[]): Promise<void> {
  const ids = moves.map((move) => move.split(' ')[1]!)
  const slugs = await watch.sql<{ slug: string }[]>`select slug from sites where id = any(${ids})`
  for (const { slug } of slugs) await expect.poll(async () => (await fleet.visit(slug)).status).toBe(status)
}

/** The victim stops in the middle of its second move; then the survivor begins. */
async function untilBothAreAtIt(): Promise<void> {
  await expect.poll(() => watch.isHeld(VICTIM), { interval: 5 }).toBe(true)
  survivor().kill('SIGCONT')
}

/** Between two transactions: what it has locked, no one else could move. */
async function freezeSurvivor(): Promise<void> {
  for (;;) {
    survivor().kill('SIGSTOP')
    await sleep(20)
    if (!(await watch.isBusy(SURVIVOR))) return
    survivor().kill('SIGCONT')
    await sleep(20)
  }
}

async function untilSurvivorHasMoved(): Promise<void> {
  await expect.poll(async () => movesOf(await watch.moves(), SURVIVOR).length, { interval: 5 }).toBeGreaterThan(0)
}

test.each<MoveKind>(['expired', 'removed'])('killed while a drop is being %s', async (kind) => {
  await watch.forget()
  await watch.hold(VICTIM, kind, 1)
  const mailsBefore = smtp.received.length
  const due = await makeDueForVictim()
  await untilBothAreAtIt()
  await untilSurvivorHasMoved()
  await killVictim()

  // Both had begun, the victim's second move was not finished, and others were still to be made.
  const moves = await watch.moves()
  expect(movesOf(moves, VICTIM).filter((move) => move.kind === kind)).toHaveLength(1)
  expect(moves.length).toBeLessThan(due.moves.length - 1)
  await watch.release()
  await expectAllOnce(due, mailsBefore)
  await expectVisitorsSee(410, due.moves)
})

test.each(['received', 'accepted'] as const)('killed when the mail server has "%s" a mail', async (moment) => {
  await watch.forget()
  const mailsBefore = smtp.received.length
  const accepted = new Map(CONTROLS.map((control) => [control, 0]))
  const killed = Promise.withResolvers<number>()
  let isAlive = true
  onDelivery = async (delivery) => {
    if (delivery.moment === 'accepted') accepted.set(delivery.client, accepted.get(delivery.client)! + 1)
    if (accepted.get(VICTIM) === 1) survivor().kill('SIGCONT')
    const isMiddle = accepted.get(VICTIM)! >= 2 && accepted.get(SURVIVOR)! >= 1
    if (!isAlive || !isMiddle || delivery.client !== VICTIM || delivery.moment !== moment) return
    isAlive = false
    await killVictim()
    killed.resolve(smtp.received.length - mailsBefore)
  }
  const due = await makeDueForVictim()
  expect(await killed.promise).toBeLessThan(due.mails.length)
  await expectAllOnce(due, mailsBefore)
  onDelivery = () => {}
})

test('killed while the drops of a plan that has ended are being paused', async () => {
  const customers = owners.slice(0, 4)
  const organisations = await Promise.all(customers.map(organisationOf))
  await watch.sql`update organisations set plan = 'plus' where id = any(${organisations})`
  // Two more than they have: four, one too many for the free plan.
  for (const { browser } of customers) await Promise.all([newDrop(browser), newDrop(browser)])
  /** Subscriptions that Stripe does not know any more, to be asked about now. */
  const endPlans = (ended: readonly string[]) => watch.sql`
    insert into subscriptions ${watch.sql(
      ended.map((org_id) => ({
        id: `sub_${org_id}`,
        org_id,
        plan: 'plus',
        billing_interval: 'monthly',
        status: 'active',
        check_at: new Date(),
      })),
    )}`
  await watch.forget()
  await watch.hold(VICTIM, 'paused', 1)
  await freezeSurvivor()
  await endPlans(organisations.slice(0, 2))
  await untilBothAreAtIt()
  await endPlans(organisations.slice(2))
  await untilSurvivorHasMoved()
  await killVictim()
  expect(movesOf(await watch.moves(), VICTIM)).toHaveLength(1)
  await watch.release()

  // What a control took and did not finish is taken again when its time is over; no one waits for that here.
  await watch.sql`update subscriptions set check_at = now() where check_at is not null`
  const pausedPerOwner = async () => {
    const rows = await watch.sql<{ count: number }[]>`
      select count(*)::int from moves m join sites s on s.id = m.site_id where m.kind = 'paused' group by s.org_id`
    return rows.map(({ count }) => count)
  }
  await expect.poll(pausedPerOwner).toEqual([1, 1, 1, 1])
  await fleet.startControl(0)
  await severalRuns()
  expect(await pausedPerOwner()).toEqual([1, 1, 1, 1])
  const told = await watch.sql`
    select count(*)::int from audit_log where action = 'billing.plan_changed' group by org_id`
  expect(told.map((row) => row['count'])).toEqual([1, 1, 1, 1])
  await expectVisitorsSee(503, await madeMoves())
})
