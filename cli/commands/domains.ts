import { chosenDrop } from '../chosen-drop.ts'
import { dropOption, type Command, type Context } from '../command.ts'
import { usageError } from '../failure.ts'
import { plain, table } from '../terminal.ts'

interface DnsRecord {
  readonly type: string
  readonly name: string
  readonly value: string
}

interface Domain {
  readonly domain: string
  readonly state: string
  readonly detail: string
  readonly records: readonly DnsRecord[]
  readonly pair?: Domain | null
}

const ACTIONS = ['add', 'check', 'remove', 'list'] as const

export const domains: Command = {
  name: 'domains',
  summary: 'Serve a drop from your own domain',
  usage: 'domains add|check|remove <domain> | domains list [--drop <slug|id>]',
  options: { drop: dropOption },
  details: ['"add" and "check" print the DNS records to set; the certificate follows by itself.'],
  words: ACTIONS,
  maxPositionals: 2,
  async run(context, args) {
    const [action, domain] = args.positionals
    const known = ACTIONS.find((candidate) => candidate === action)
    if (known === undefined)
      throw usageError('Say "dropway domains add|check|remove <domain>" or "dropway domains list".')
    if (known !== 'list' && domain === undefined)
      throw usageError(`Name the domain: dropway domains ${known} www.example.com`)
    const site = await chosenDrop(context, args)
    const root = `${context.api.sitePath(site.id)}/domains`
    switch (known) {
      case 'list':
        return listDomains(context, root)
      case 'add':
        return show(context, await context.api.call<Domain>('POST', root, { json: { domain } }))
      case 'check':
        return show(context, await context.api.call<Domain>('POST', `${root}/${encodeURIComponent(domain!)}/check`))
      case 'remove':
        return remove(context, root, domain!)
      default:
        known satisfies never
    }
  },
}

async function listDomains({ api, terminal }: Context, root: string): Promise<void> {
  const all = await api.call<Domain[]>('GET', root)
  terminal.data(all)
  if (all.length === 0)
    terminal.note('This drop has no domain of its own yet. "dropway domains add <domain>" adds one.')
  for (const line of table(all.map((one) => [one.domain, one.state, plain(one.detail)]))) terminal.print(line)
}

function show({ terminal }: Context, domain: Domain): void {
  for (const one of domain.pair ? [domain, domain.pair] : [domain]) {
    terminal.print(`${one.domain}  ${one.state}  ${plain(one.detail)}`)
    if (one.state === 'active') continue
    for (const line of table(one.records.map((record) => [`  ${record.type}`, record.name, plain(record.value)])))
      terminal.print(line)
  }
  terminal.data(domain)
}

async function remove({ api, terminal }: Context, root: string, domain: string): Promise<void> {
  await api.call('DELETE', `${root}/${encodeURIComponent(domain)}`)
  terminal.print(`${domain} no longer leads to this drop. Remove its DNS record too.`)
  terminal.data({ domain, removed: true })
}
