/** `org`: the organisations of a person, who belongs to them, and which one the client acts for. */
import type { Arguments, Command, Context } from '../terminal/command.ts'
import { usageError } from '../terminal/failure.ts'
import { formatTime, plain, table } from '../terminal/terminal.ts'
import { unknownWord } from '../terminal/unknown-word.ts'
import { signIn } from './login.ts'

interface Tenant {
  readonly id: string
  readonly name: string
  readonly plan: string
  readonly role: string
}

interface Member {
  readonly email: string
  readonly role: string
}

interface Invitation extends Member {
  readonly id: string
  readonly expires_at: string
}

const ACTIONS = ['list', 'members', 'invite', 'switch'] as const

export const org: Command = {
  kind: 'service',
  name: 'org',
  summary: 'Show your organisations, invite people, act for another one',
  usage: 'org [list] | org members [id] | org invite <email> [--role <role>] [id] | org switch [--device]',
  options: {
    role: { type: 'string', value: 'role', help: 'What the invited person may do: member (else) or admin' },
    device: { type: 'boolean', help: 'With "switch": as with login' },
  },
  details: [
    '"members" and "invite" without an id mean the organisation that you act for.',
    '"switch" signs in again: a sign-in acts for the organisation that the dashboard shows when you allow it.',
    'A token in DROPWAY_TOKEN belongs to the organisation that it was made in.',
  ],
  words: ACTIONS,
  maxPositionals: 3,
  async run(context, args) {
    const [action = 'list', ...rest] = args.positionals
    const known = ACTIONS.find((candidate) => candidate === action)
    switch (known) {
      case 'list':
        return list(context)
      case 'members':
        return members(context, rest[0])
      case 'invite':
        return invite(context, rest, args)
      case 'switch':
        return switchTo(context, args)
      case undefined:
        throw unknownWord('action', action, ACTIONS, 'dropway org members')
      default:
        known satisfies never
    }
  },
}

async function currentOf({ api }: Context): Promise<{ id: string; name: string }> {
  return (await api.call<{ organisation: { id: string; name: string } }>('GET', '/me')).organisation
}

async function list(context: Context): Promise<void> {
  const { api, terminal } = context
  const current = await currentOf(context)
  const all = await api.call<Tenant[]>('GET', '/organisations')
  terminal.data(all.map((tenant) => ({ ...tenant, current: tenant.id === current.id })))
  const rows = all.map((tenant) => [
    tenant.id === current.id ? '*' : '',
    tenant.id,
    plain(tenant.name),
    tenant.plan,
    tenant.role,
  ])
  for (const line of table(rows)) terminal.print(line)
}

async function pathOf(context: Context, id: string | undefined): Promise<string> {
  return `/organisations/${encodeURIComponent(id ?? (await currentOf(context)).id)}`
}

async function members(context: Context, id: string | undefined): Promise<void> {
  const { api, terminal } = context
  const all = await api.call<Member[]>('GET', `${await pathOf(context, id)}/members`)
  terminal.data(all)
  for (const line of table(all.map((member) => [plain(member.email), member.role]))) terminal.print(line)
}

async function invite(context: Context, [email, id]: readonly string[], args: Arguments): Promise<void> {
  const { api, terminal } = context
  if (email === undefined) throw usageError('Name whom to invite: dropway org invite ada@example.com')
  const role = args.text('role')
  const invitation = await api.call<Invitation>('POST', `${await pathOf(context, id)}/invitations`, {
    json: { email, ...(role === undefined ? {} : { role }) },
  })
  terminal.data(invitation)
  terminal.print(
    `${plain(invitation.email)} is invited as ${invitation.role}; the link in the mail works until ${formatTime(invitation.expires_at)} UTC.`,
  )
}

async function switchTo(context: Context, args: Arguments): Promise<void> {
  const { settings, terminal, url } = context
  if (settings.token !== undefined)
    throw usageError(
      `DROPWAY_TOKEN belongs to one organisation. Choose another in the dashboard, make a token there (${url}/account/tokens) and set DROPWAY_TOKEN to it.`,
    )
  terminal.note('Choose the organisation at the top of the dashboard first, then allow the client.')
  await signIn(context, args.flag('device'))
  const { id, name } = await currentOf(context)
  terminal.print(`You act for ${plain(name)} now.`)
  terminal.data({ id, name })
}
