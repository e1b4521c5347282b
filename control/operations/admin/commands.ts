/** What an operator can do, each as one function over the same services as the web server. */
import { parseArgs } from 'node:util'
import { systemClock } from '../../../shared/running/clock.ts'
import { firstPlan, PLAN_NAMES, type PlanName } from '../../ground/terms/plans.ts'
import { CURRENCIES } from '../../people/organisations/countries.ts'
import { setUpStripe } from '../../plans/billing/setup.ts'
import { changeRoutes } from '../../ground/routing/changes.ts'
import type { Services } from '../../composition/services.ts'
import { contentCommands, said } from './content-commands.ts'
import { options, required, UsageError, type Command, type OptionTable } from './command.ts'
import { findAccount, makeStaff } from './queries.ts'
import { planUpgrade, type UpgradePlan } from './upgrade.ts'

/** Recorded as the actor of what is done here. */
const OPERATOR = { system: 'operator' } as const

const createAccount: Command = {
  usage: 'create-account --email <e-mail> [--plan <plan>] [--verified] [--token] [--password-stdin] [--staff]',
  summary: 'creates an account; --token prints an API token, once; --password-stdin reads the password from stdin',
  async run(services, args) {
    const given = options(args, {
      email: { type: 'string' },
      plan: { type: 'string', default: firstPlan() },
      verified: { type: 'boolean', default: false },
      token: { type: 'boolean', default: false },
      'password-stdin': { type: 'boolean', default: false },
      staff: { type: 'boolean', default: false },
    })
    const { email, plan, verified, token, staff } = given
    const planName = parsePlan(plan)
    if (token && !verified) throw new UsageError('--token needs --verified: only a verified account can have a token.')
    const password = given['password-stdin'] ? await readPassword(process.stdin) : undefined
    const account = await services.accounts.createAccount({ email: required('--email', email), password, verified })
    if (staff) await makeStaff(services.sql, account.userId)
    if (planName !== firstPlan()) await changePlan(services, account.orgId, planName)
    const owner = { userId: account.userId, orgId: account.orgId, emailVerified: verified }
    const issued = token ? await services.tokens.createFor(owner, { name: 'operator' }) : undefined
    return {
      email: account.email,
      user_id: account.userId,
      org_id: account.orgId,
      plan: planName,
      ...(issued ? { token: issued.token } : {}),
    }
  },
}

/** Longer than any password that is accepted; a file that was piped in by mistake is not read whole. */
const MAX_STDIN_BYTES = 4096

/** From stdin, since every user of a machine can read the command lines of all others. One line, without its end. */
export async function readPassword(input: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of input) {
    chunks.push(chunk)
    size += chunk.byteLength
    if (size > MAX_STDIN_BYTES) break
  }
  const password = Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '')
  if (password === '' || size > MAX_STDIN_BYTES || /[\r\n]/.test(password))
    throw new UsageError('--password-stdin needs the password as one line on stdin.')
  return password
}

const invite: Command = {
  usage: 'invite --email <e-mail>',
  summary: 'lets one address have an account, whatever SIGNUP says: mails a link that works once, and prints it',
  async run({ newcomers, sql }, args) {
    const email = required('--email', options(args, { email: { type: 'string' } }).email)
    if (await findAccount(sql, email)) throw new UsageError(`${email} has an account already.`)
    const { email: address, link, until } = await newcomers.invite(email)
    return { email: address, link, until: until.toISOString() }
  },
}

const setPlan: Command = {
  usage: 'set-plan --email <e-mail> --plan <plan>',
  summary: 'to free: as a cancellation taking effect; to a paid plan: as subscribing again',
  async run(services, args) {
    const { email, plan } = options(args, { email: { type: 'string' }, plan: { type: 'string' } })
    const planName = parsePlan(required('--plan', plan))
    const account = await findAccount(services.sql, required('--email', email))
    if (!account) throw new UsageError(`There is no account ${email}.`)
    await changePlan(services, account.org_id, planName)
    return { ...account, plan: planName }
  },
}

const endAccess: Command = {
  usage: 'end-access --email <e-mail>',
  summary:
    'ends every session, token, app and passkey of an account, what it opened as a member, and its password; a mail offers to choose a new one, unless passwords are off',
  async run(services, args) {
    const { email } = options(args, { email: { type: 'string' } })
    const ended = await services.accounts.endAccess(required('--email', email))
    if (!ended) throw new UsageError(`There is no account ${email}.`)
    return { email, user_id: ended.userId, sessions: ended.sessions, tokens: ended.tokens }
  },
}

const readmit: Command = {
  usage: 'readmit --email <e-mail>',
  summary:
    'lets one person in again whom the sign-in provider has removed, with what they had; it is not asked about them until they sign in with it',
  async run({ accounts }, args) {
    const email = required('--email', options(args, { email: { type: 'string' } }).email)
    const outcome = await accounts.readmit(email)
    switch (outcome.kind) {
      case 'readmitted':
        return { email, user_id: outcome.userId }
      case 'not_out':
        throw new UsageError(`${email} was not removed by a sign-in provider.`)
      case 'unknown':
        throw new UsageError(`There is no account ${email}.`)
    }
  },
}

const takedown: Command = {
  usage: 'takedown <slug or address> --reason <text>',
  summary: 'removes what is served at an address (410) and tells its owner, where the database knows one, why',
  async run(services, args) {
    const { slug, reason } = slugAnd(args, { reason: { type: 'string' } })
    return { slug, state: 'removed', ...(await services.trust.takedown(OPERATOR, slug, required('--reason', reason))) }
  },
}

const restore: Command = {
  usage: 'restore <slug> | restore --backup <directory or s3://…> [--snapshot <name>]',
  summary: 'undoes a takedown; or brings a backup back into an installation that is empty',
  async run(services, args) {
    const table = { backup: { type: 'string' }, snapshot: { type: 'string' } } as const
    if (args.includes('--backup')) return restoreInstallation(services, options(args, table))
    const { slug } = slugAnd(args, {})
    return { slug, state: 'restored', ...(await services.trust.restore(OPERATOR, slug)) }
  },
}

async function restoreInstallation(services: Services, from: { backup?: string; snapshot?: string }): Promise<unknown> {
  const done = await said(services.backups.restore(required('--backup', from.backup), from.snapshot))
  return { ...done, ...(await services.routing.republish({ newHistory: true })) }
}

/** Its clock is already set to --now by main.ts: services read the time from their clock only. */
const runLifecycle: Command = {
  usage: 'run-lifecycle [--now <ISO time> [--really]] [--all]',
  summary:
    'tells owners, expires and removes drops, as the jobs do; with --now it says what it would do then, and does it with --really; --all: also when that removes very many',
  async run(services, args) {
    const { really, all } = options(args, {
      really: { type: 'boolean', default: false },
      all: { type: 'boolean', default: false },
    })
    const now = new Date(services.clock.now()).toISOString()
    const isMoved = services.clock !== systemClock
    if (isMoved && !really) return { now, ...(await services.lifecycle.preview()) }
    const { lifecycle, mailer } = services
    const done = isMoved || all ? await lifecycle.runAsOf({ unbounded: all }) : await lifecycle.run()
    return { now, ...done, mails: await mailer.deliverDue() }
  },
}

const sweep: Command = {
  usage: 'sweep [--now <ISO time>] [--all]',
  summary:
    'removes blobs, half-written files and partial uploads that nothing needs any more, as the jobs do; --all: also when the database does not know most of the blobs',
  async run(services, args) {
    const { all } = options(args, { all: { type: 'boolean', default: false } })
    const uploads = await services.uploads.sweep()
    const { removed, held } = await services.blobCollection.run({ unbounded: all })
    return { now: new Date(services.clock.now()).toISOString(), uploads, blobs: removed, held }
  },
}

const republish: Command = {
  usage: 'republish [--new-history] [--remove-unknown <count>|all]',
  summary:
    'writes the whole routing table to Redis again; --new-history: it replaces whatever the edges hold; --remove-unknown: addresses that they serve and the database does not know, if there are no more',
  async run(services, args) {
    const { 'new-history': newHistory, 'remove-unknown': unknown } = options(args, {
      'new-history': { type: 'boolean', default: false },
      'remove-unknown': { type: 'string' },
    })
    return services.routing.republish({ newHistory, removeUnknown: parseCount('--remove-unknown', unknown) })
  },
}

const upgrade: Command = {
  usage: 'upgrade --check',
  summary:
    'says which migrations the first control of this release will run, how long they may take, and what the release before can still do; changes nothing',
  async run({ sql }, args) {
    const { check } = options(args, { check: { type: 'boolean', default: false } })
    if (!check)
      throw new UsageError('Say "upgrade --check". The upgrade itself is starting the new release, controls first.')
    return planUpgrade(sql)
  },
  hasFailed: (result) => (result as UpgradePlan).of_a_newer_release.length > 0,
}

const certificates: Command = {
  usage: 'certificates list',
  summary: 'certificates of custom domains and when they end',
  async run(services, args) {
    if (args[0] !== 'list') throw new UsageError(`certificates ${args[0] ?? ''} is not known.`)
    return services.domains.certificates()
  },
}

const stripeSetup: Command = {
  usage: 'stripe-setup',
  summary:
    'creates the products, prices, billing portals and the webhook in the Stripe account; again: changes nothing',
  async run({ stripe, config }) {
    if (!stripe) throw new UsageError('STRIPE_SECRET_KEY is not set. Set it to a secret key of your Stripe account.')
    return setUpStripe(stripe, {
      currencies: CURRENCIES,
      webhookUrl: `${config.baseUrl}/stripe/webhook`,
      service: config.look.name,
    })
  },
}

export const commands: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['create-account', createAccount],
  ['invite', invite],
  ['set-plan', setPlan],
  ['end-access', endAccess],
  ['readmit', readmit],
  ['takedown', takedown],
  ['restore', restore],
  ...contentCommands,
  ['run-lifecycle', runLifecycle],
  ['sweep', sweep],
  ['republish', republish],
  ['upgrade', upgrade],
  ['certificates', certificates],
  ['stripe-setup', stripeSetup],
])

async function changePlan(services: Services, orgId: string, plan: PlanName): Promise<void> {
  const { changes } = await changeRoutes(services.sql, (tx) => services.lifecycle.changePlan(tx, orgId, plan))
  await services.routing.propagate(changes)
}

function parsePlan(text: string): PlanName {
  const plan = PLAN_NAMES.find((name) => name === text && name !== 'anonymous')
  if (!plan)
    throw new UsageError(`--plan must be one of ${PLAN_NAMES.filter((name) => name !== 'anonymous').join(', ')}.`)
  return plan
}

function parseCount(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (text === 'all') return Number.POSITIVE_INFINITY
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`${name} must be a number, or "all".`)
  return Number(text)
}

function slugAnd<const Table extends OptionTable>(args: readonly string[], table: Table) {
  const { values, positionals } = parseArgs({ args: [...args], options: table, allowPositionals: true, strict: true })
  return { slug: required('<slug>', positionals[0]), ...values }
}
