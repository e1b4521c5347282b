/** `dropway publishers`: workflows of a forge that publish to a drop without a secret. */
import { chosenDrop, confirmed } from '../../content/chosen-drop.ts'
import { sitePath, type ApiClient } from '../../service/api-client.ts'
import { dropOption, yesOption, type Arguments, type Command, type Context } from '../../terminal/command.ts'
import { CliError, exitCodes, usageError } from '../../terminal/failure.ts'
import type { DropPublisher, Site } from '../../terminal/json-output.ts'
import { formatTime, plain, table } from '../../terminal/terminal.ts'
import { unknownWord } from '../../terminal/unknown-word.ts'

const ACTIONS = ['list', 'add', 'remove'] as const

export const publishers: Command = {
  kind: 'service',
  name: 'publishers',
  summary: 'Let workflows of a forge publish a drop without a secret',
  usage:
    'publishers list | publishers add <owner/name> [--forge <name>] [--workflow <file>] [--branch <name>] [--environment <name>] [--pull-requests] | publishers remove <owner/name|id> [--drop <slug|id>] [--yes]',
  options: {
    forge: { type: 'string', value: 'name', help: 'github (default), gitlab, forgejo, or oidc for another issuer' },
    issuer: { type: 'string', value: 'url', help: 'Who signs the tokens, where it is not the forge itself' },
    workflow: { type: 'string', value: 'file', help: "The workflow file's name, such as deploy.yml; any without" },
    branch: { type: 'string', value: 'name', help: 'The branch; any without' },
    environment: { type: 'string', value: 'name', help: 'The environment of the job; any without' },
    'pull-requests': {
      type: 'boolean',
      help: 'Pull requests, also from forks, publish to a preview of their own, and to nothing else',
    },
    drop: dropOption,
    yes: yesOption,
  },
  details: [
    'A job of a trusted workflow runs "dropway deploy --slug <slug>" and needs no token.',
    'The first job pins the repository: another one of the same name is refused.',
  ],
  words: ACTIONS,
  maxPositionals: 2,
  async run(context, args) {
    const [action, name] = args.positionals
    const known = ACTIONS.find((candidate) => candidate === action)
    if (known === undefined) throw unknownWord('action', action, ACTIONS, 'dropway publishers list')
    if (known !== 'list' && name === undefined)
      throw usageError(`Name the repository: dropway publishers ${known} owner/name`)
    const site = await chosenDrop(context, args, known === 'list' ? 'shows' : 'changes')
    if (known === 'list' || name === undefined) return list(context, site)
    return known === 'add' ? add(context, args, site, name) : remove(context, args, site, name)
  },
}

const rootOf = (site: Site): string => `${sitePath(site.id)}/publishers`
const listOf = (api: ApiClient, site: Site): Promise<DropPublisher[]> => api.call<DropPublisher[]>('GET', rootOf(site))

async function list({ api, terminal }: Context, site: Site): Promise<void> {
  const all = await listOf(api, site)
  terminal.data(all)
  if (all.length === 0)
    return terminal.note(`${site.slug} trusts no workflow. "dropway publishers add owner/name" adds one.`)
  const rows = all.map((each) => [
    plain(each.repository),
    each.provider,
    plain([each.workflow, each.branch, each.environment].filter((part) => part !== null).join(', ')) || 'any run',
    each.pull_requests ? 'previews' : 'no',
    each.last_used_at === null ? 'not used yet' : formatTime(each.last_used_at),
    each.id,
  ])
  for (const line of table([['REPOSITORY', 'FORGE', 'ONLY', 'PULL REQUESTS', 'LAST USED', 'ID'], ...rows]))
    terminal.print(line)
}

async function add({ api, terminal }: Context, args: Arguments, site: Site, repository: string): Promise<void> {
  const given = ['issuer', 'workflow', 'branch', 'environment'].map((name) => [name, args.text(name)] as const)
  const json = {
    provider: args.text('forge') ?? 'github',
    repository,
    ...Object.fromEntries(given.filter(([, value]) => value !== undefined)),
    ...(args.flag('pull-requests') ? { pull_requests: true } : {}),
  }
  const added = await api.call<DropPublisher>('POST', rootOf(site), { json })
  terminal.print(`${plain(added.repository)} may publish ${site.slug} from its workflows, without a token.`)
  terminal.data(added)
}

async function remove(context: Context, args: Arguments, site: Site, name: string): Promise<void> {
  const { api, terminal } = context
  const found = (await listOf(api, site)).filter(({ id, repository }) => id === name || repository === name)
  if (found.length === 0)
    throw new CliError(
      `${site.slug} does not trust "${plain(name)}". "dropway publishers list" shows what it trusts.`,
      exitCodes.failed,
      'not_found',
    )
  await confirmed(context, args, `Let ${plain(name)} publish ${site.slug} no longer? Running jobs are refused at once.`)
  for (const { id } of found) await api.call('DELETE', `${rootOf(site)}/${id}`)
  terminal.print(`${plain(name)} no longer publishes ${site.slug}.`)
  terminal.data({ id: site.id, removed: found.map(({ id }) => id) })
}
