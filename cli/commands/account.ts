/** `logout`, `whoami`, `tokens` and `usage`. */
import { clockNotices, type ClockedDrop } from '../../shared/values/clock-notice.ts'
import { openBrowser } from '../terminal/browser.ts'
import { confirmed } from '../content/chosen-drop.ts'
import { yesOption, type Command, type Context } from '../terminal/command.ts'
import { usageError } from '../terminal/failure.ts'
import { formatTime, plain, table } from '../terminal/terminal.ts'
import { bytesInWords } from '../../shared/values/sizes.ts'
import { unknownWord } from '../terminal/unknown-word.ts'

export const logout: Command = {
  kind: 'service',
  name: 'logout',
  summary: 'Revoke the stored sign-in and forget it',
  usage: 'logout',
  maxPositionals: 0,
  async run({ credentials, oauth, settings, terminal, url }) {
    const stored = await credentials.read(url)
    if (stored === undefined) {
      terminal.print('No one was signed in.')
    } else {
      // The token is forgotten first: a service that cannot be reached must not keep it on this machine.
      await credentials.remove(url)
      await oauth.revoke(stored)
      terminal.print('Signed out.')
    }
    if (settings.token !== undefined) terminal.note('DROPWAY_TOKEN is still set; revoke it in the dashboard settings.')
    terminal.data({ signed_out: stored !== undefined })
  },
}

interface Account {
  readonly user: { readonly email: string; readonly email_verified: boolean }
  readonly organisation: { readonly name: string }
  readonly plan: string
  readonly role: string
  /** An older service does not send it. */
  readonly expiring?: readonly ClockedDrop[]
}

export const whoami: Command = {
  kind: 'service',
  name: 'whoami',
  summary: 'Show who is signed in',
  usage: 'whoami',
  maxPositionals: 0,
  async run({ api, terminal, url }) {
    const account = await api.call<Account>('GET', '/me')
    terminal.data(account)
    const { user, organisation, plan, role } = account
    const rows = [
      ['E-mail', user.email_verified ? user.email : `${user.email} (not verified)`],
      ['Organisation', plain(organisation.name)],
      ['Plan', plan],
      ['Role', role],
      ['Service', url],
    ]
    for (const line of table(rows)) terminal.print(line)
    for (const notice of clockNotices(account.expiring ?? [], url, Date.now())) terminal.note(notice)
  },
}

interface Token {
  readonly id: string
  readonly name: string
  readonly hint: string
  readonly created_at: string
  readonly last_used_at: string | null
  readonly scopes?: readonly string[] | null
  readonly expires_at?: string | null
}

const TOKEN_ACTIONS = ['list', 'create', 'revoke'] as const

export const tokens: Command = {
  kind: 'service',
  name: 'tokens',
  summary: 'List, create and revoke API tokens',
  usage: 'tokens [list] | tokens create | tokens revoke <id> [--yes]',
  options: { yes: yesOption },
  details: [
    '"create" opens the page of the dashboard that makes them, and shows each once.',
    'The client itself cannot: what it is signed in with may leak, and must not be able to make others.',
  ],
  words: TOKEN_ACTIONS,
  maxPositionals: 2,
  async run(context, args) {
    const [action = 'list', id] = args.positionals
    const known = TOKEN_ACTIONS.find((candidate) => candidate === action)
    switch (known) {
      case 'list':
        return listTokens(context)
      case 'create':
        return createToken(context)
      case 'revoke': {
        if (id === undefined)
          throw usageError('Name the token: dropway tokens revoke <id>. "dropway tokens" lists them.')
        await confirmed(context, args, `Revoke the token ${id}? Whatever uses it stops working.`)
        await context.api.call('DELETE', `/tokens/${encodeURIComponent(id)}`)
        context.terminal.print(`The token ${id} no longer works.`)
        context.terminal.data({ id, revoked: true })
        return
      }
      case undefined:
        throw unknownWord('action', action, TOKEN_ACTIONS, 'dropway tokens revoke <id>')
      default:
        known satisfies never
    }
  },
}

async function createToken({ settings, terminal, url }: Context): Promise<void> {
  const page = `${url}/account/tokens`
  const opened = settings.hasBrowser && (await openBrowser(page, settings.browser))
  terminal.note(opened ? 'Your browser shows where tokens are made:' : 'Open this page in a browser; it makes tokens:')
  terminal.print(page)
  terminal.data({ url: page, opened })
}

async function listTokens({ api, terminal, url }: Context): Promise<void> {
  const all = await api.call<Token[]>('GET', '/tokens')
  terminal.data(all)
  if (all.length === 0) terminal.note(`You have no API tokens. The dashboard at ${url} makes them.`)
  const rows = all.map((token) => [
    token.id,
    plain(token.name),
    `…${plain(token.hint)}`,
    // A service of before scopes says nothing of them.
    token.scopes?.join(', ') ?? 'everything',
    token.expires_at ? `until ${formatTime(token.expires_at)}` : 'no end',
    token.last_used_at === null ? 'never used' : `used ${formatTime(token.last_used_at)}`,
  ])
  for (const line of table(rows)) terminal.print(line)
}

interface Usage {
  readonly plan: string
  readonly drops: { readonly used: number; readonly limit: number }
  readonly storage_bytes: { readonly used: number; readonly limit: number }
  readonly custom_domains: { readonly used: number; readonly limit: number }
  readonly upload_bytes: { readonly limit: number }
  readonly versions_per_drop: { readonly limit: number }
  readonly views_30d: number
}

export const usage: Command = {
  kind: 'service',
  name: 'usage',
  summary: "Show what is used of the plan's limits",
  usage: 'usage',
  maxPositionals: 0,
  async run({ api, terminal }) {
    const used = await api.call<Usage>('GET', '/usage')
    terminal.data(used)
    const rows = [
      ['Plan', used.plan],
      ['Drops', `${used.drops.used} of ${used.drops.limit}`],
      ['Storage', `${bytesInWords(used.storage_bytes.used)} of ${bytesInWords(used.storage_bytes.limit)}`],
      ['Domains', `${used.custom_domains.used} of ${used.custom_domains.limit}`],
      ['Largest upload', bytesInWords(used.upload_bytes.limit)],
      ['Versions kept', String(used.versions_per_drop.limit)],
      ['Views, 30 days', String(used.views_30d)],
    ]
    for (const line of table(rows)) terminal.print(line)
  },
}
