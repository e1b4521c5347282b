import { sitePath } from '../service/api-client.ts'
import { chosenDrop, confirmed } from '../content/chosen-drop.ts'
import { dropOption, yesOption, type Command, type Context } from '../terminal/command.ts'
import { usageError } from '../terminal/failure.ts'
import { plain, table } from '../terminal/terminal.ts'
import { unknownWord } from '../terminal/unknown-word.ts'

interface RecordLine {
  readonly action: string
  readonly host: string
  readonly zone: string
  readonly type: string
  readonly value: string
  readonly found: readonly string[]
}

interface Domain {
  readonly domain: string
  readonly unicode: string | null
  readonly state: string
  readonly detail: string
  readonly records: readonly RecordLine[]
  readonly alternative: RecordLine | null
  readonly warnings: readonly string[]
  readonly redirect_to: string | null
  readonly pair?: Domain | null
}

const ACTIONS = ['add', 'check', 'main', 'remove', 'list'] as const

export const domains: Command = {
  kind: 'service',
  name: 'domains',
  summary: 'Serve a drop from your own domain',
  usage: 'domains add|check|main|remove <domain> | domains list [--drop <slug|id>] [--yes]',
  options: { drop: dropOption, yes: yesOption },
  details: [
    '"add", "check" and "list" print what is missing or wrong in your DNS; the certificate follows by itself.',
    '"*.docs.example.com" stands for every name directly below docs.example.com, where the plan allows it; quote it.',
    '"main" makes this half of an apex/www pair the name that the other one leads to.',
  ],
  words: ACTIONS,
  maxPositionals: 2,
  async run(context, args) {
    const [action, domain] = args.positionals
    const known = ACTIONS.find((candidate) => candidate === action)
    if (known === undefined) throw unknownWord('action', action, ACTIONS, 'dropway domains list')
    if (known !== 'list' && domain === undefined)
      throw usageError(`Name the domain: dropway domains ${known} www.example.com`)
    const site = await chosenDrop(context, args, known === 'list' ? 'shows' : 'changes')
    const root = `${sitePath(site.id)}/domains`
    if (known === 'list' || domain === undefined) return listDomains(context, root)
    switch (known) {
      case 'add':
        return show(context, await context.api.call<Domain>('POST', root, { json: { domain } }))
      case 'check':
      case 'main':
        return show(context, await context.api.call<Domain>('POST', `${root}/${encodeURIComponent(domain)}/${known}`))
      case 'remove':
        await confirmed(context, args, `Remove ${domain}? Visitors see an error there at once.`)
        return remove(context, root, domain)
      default:
        known satisfies never
    }
  },
}

async function listDomains(context: Context, root: string): Promise<void> {
  const { api, terminal } = context
  const all = await api.call<Domain[]>('GET', root)
  terminal.data(all)
  if (all.length === 0)
    terminal.note('This drop has no domain of its own yet. "dropway domains add <domain>" adds one.')
  for (const one of all) print(context, one)
}

function show(context: Context, domain: Domain): void {
  print(context, domain)
  context.terminal.data(domain)
}

function print({ terminal }: Context, domain: Domain): void {
  for (const one of domain.pair ? [domain, domain.pair] : [domain]) {
    const name = one.unicode === null ? one.domain : `${plain(one.unicode)} (${one.domain})`
    terminal.print(`${name}  ${one.state}  ${plain(one.detail)}`.trimEnd())
    for (const line of recordTable(one.records)) terminal.print(`  ${line}`)
    if (one.alternative !== null)
      terminal.print(
        `  Where your DNS provider offers ALIAS (or ANAME, or CNAME flattening), one record does for A and AAAA: ${one.alternative.host} ${one.alternative.type} ${plain(one.alternative.value)}`,
      )
    for (const warning of one.warnings) terminal.print(`  Warning: ${plain(warning)}`)
  }
}

/** Everything that is missing or wrong in the zone; hosts are relative to it, as DNS providers want them. */
function recordTable(records: readonly RecordLine[]): string[] {
  const [first] = records
  if (!first) return []
  const rows = records.map(({ action, host, type, value, found }) => [
    action,
    host,
    type,
    action === 'remove' ? 'nothing' : plain(value),
    action === 'remove' ? plain(value) : plain(found.join(', ')) || 'nothing',
  ])
  return [`In the zone ${first.zone}:`, ...table([['DO', 'HOST', 'TYPE', 'WANTED', 'FOUND NOW'], ...rows])]
}

async function remove({ api, terminal }: Context, root: string, domain: string): Promise<void> {
  await api.call('DELETE', `${root}/${encodeURIComponent(domain)}`)
  terminal.print(`${domain} no longer leads to this drop. Remove its DNS record too.`)
  terminal.data({ domain, removed: true })
}
