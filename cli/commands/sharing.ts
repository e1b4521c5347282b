/** Commands about who may see a drop: `share`, `unshare`, `viewers`, `shared`. */
import { chosenDrop, confirmed } from '../content/chosen-drop.ts'
import { sitePath, type ApiClient } from '../service/api-client.ts'
import { dropOption, yesOption, type Arguments, type Command, type Context } from '../terminal/command.ts'
import { CliError, exitCodes, usageError } from '../terminal/failure.ts'
import type { GuestLink, SharedDrop, Site, Viewer } from '../terminal/json-output.ts'
import { countOf, formatTime, plain, table } from '../terminal/terminal.ts'

/** What a publish or a change says of who may see a drop, as the API takes it. */
export interface Sharing {
  readonly access_mode?: 'viewers'
  readonly viewers?: readonly string[]
  readonly guest_link?: true
}

/** `--private`, `--viewers` and `--guest-link`. */
export function sharingOf(args: Arguments): Sharing {
  const viewers = args.texts('viewers').flatMap(addressesIn)
  const isShared = args.flag('private') || viewers.length > 0 || args.flag('guest-link')
  return {
    ...(isShared ? { access_mode: 'viewers' } : {}),
    ...(viewers.length > 0 ? { viewers } : {}),
    ...(args.flag('guest-link') ? { guest_link: true } : {}),
  }
}

/** `a@x,b@y`. */
function addressesIn(text: string): string[] {
  return text.split(/[\s,;]+/).filter((part) => part !== '')
}

type NamedViewer = { readonly email: string } | { readonly domain: string }

function namedViewer(text: string): NamedViewer {
  return text.lastIndexOf('@') > 0 ? { email: text } : { domain: text.replace(/^@/, '') }
}

/** Without a new version: the mode first, so that nothing is open in between. */
export async function applySharing(
  api: ApiClient,
  site: Site,
  { access_mode, viewers = [], guest_link }: Sharing,
  invite = true,
): Promise<{ site: Site; link: GuestLink | undefined }> {
  const changed =
    access_mode === undefined || access_mode === site.access_mode
      ? site
      : await api.changeSite(site.id, { access_mode })
  if (viewers.length > 0)
    await api.call('POST', `${sitePath(site.id)}/viewers`, {
      json: { viewers: viewers.map(namedViewer), invite },
      repeatable: true,
    })
  const link = guest_link
    ? await api.call<GuestLink>('POST', `${sitePath(site.id)}/guest-links`, { json: {} })
    : undefined
  return { site: changed, link }
}

export const share: Command = {
  kind: 'service',
  name: 'share',
  summary: 'Let people see a drop, by mail address, domain or guest link',
  usage: 'share [address|@domain …] [--guest-link] [--no-mail] [--public] [--drop <slug|id>] [--yes]',
  options: {
    'guest-link': { type: 'boolean', help: 'Make a link that opens the drop, and print it' },
    'no-mail': { type: 'boolean', help: 'Add people without an invitation' },
    public: { type: 'boolean', help: 'Let everyone see it; asks first' },
    drop: dropOption,
    yes: yesOption,
  },
  details: [
    'From then on only those who were named see the drop; they need no account.',
    'The guest link is printed once: whoever has it can open the drop until "dropway unshare" ends it.',
  ],
  maxPositionals: 100,
  async run(context, args) {
    const { api, terminal } = context
    const viewers = args.positionals.flatMap(addressesIn)
    const isPublic = args.flag('public')
    if (isPublic && (viewers.length > 0 || args.flag('guest-link')))
      throw usageError('--public lets everyone see the drop: name no one beside it.')
    const site = await chosenDrop(context, args, 'changes')
    if (isPublic) return openToAll(context, args, site)
    const wanted: Sharing = {
      access_mode: 'viewers',
      viewers,
      ...(args.flag('guest-link') ? { guest_link: true } : {}),
    }
    const { link } = await applySharing(api, site, wanted, !args.flag('no-mail'))
    terminal.note(`Only the viewers of ${site.slug} can see it.`)
    terminal.print(link?.url ?? site.url)
    terminal.data({ url: site.url, access_mode: 'viewers', viewers, guest_link: link ?? null })
  },
}

async function openToAll(context: Context, args: Arguments, site: Site): Promise<void> {
  if (site.access_mode !== 'public') await confirmed(context, args, `Let everyone see ${site.url}?`)
  const changed = await context.api.changeSite(site.id, { access_mode: 'public' })
  context.terminal.note(`${site.slug} is open to everyone.`)
  context.terminal.print(site.url)
  context.terminal.data({ url: site.url, access_mode: changed.access_mode })
}

export const unshare: Command = {
  kind: 'service',
  name: 'unshare',
  summary: 'Take viewers or guest links away; what they opened is closed at once',
  usage: 'unshare <address|@domain|guest link id …> [--drop <slug|id>] [--yes]',
  options: { drop: dropOption, yes: yesOption },
  maxPositionals: 100,
  async run(context, args) {
    const { api, terminal } = context
    const names = args.positionals.flatMap(addressesIn)
    if (names.length === 0) throw usageError('Say whom: an address, a @domain or the id of a guest link.')
    const site = await chosenDrop(context, args, 'changes')
    const { viewers, links } = await listsOf(api, site)
    const paths = names.map((name) => pathOf(site, name, viewers, links))
    for (const path of paths) await api.call('DELETE', path)
    terminal.print(`${countOf(paths.length, 'name')} taken off ${site.slug}.`)
    terminal.data({ id: site.id, removed: names })
  },
}

/** Everything that is named is known before anything is removed. */
function pathOf(site: Site, name: string, viewers: readonly Viewer[], links: readonly GuestLink[]): string {
  const wanted = name.toLowerCase().replace(/^@/, '')
  const viewer = viewers.find(({ id, value }) => id === name || value === wanted)
  if (viewer) return `${sitePath(site.id)}/viewers/${viewer.id}`
  const link = links.find(({ id, name: label }) => id === name || label === name)
  if (link) return `${sitePath(site.id)}/guest-links/${link.id}`
  throw new CliError(
    `"${plain(name)}" is no viewer of ${site.slug}. "dropway viewers" lists them.`,
    exitCodes.failed,
    'not_found',
  )
}

async function listsOf(
  api: ApiClient,
  site: Site,
): Promise<{ viewers: readonly Viewer[]; links: readonly GuestLink[] }> {
  const { viewers } = await api.call<{ viewers: Viewer[] }>('GET', `${sitePath(site.id)}/viewers`)
  const { guest_links: links } = await api.call<{ guest_links: GuestLink[] }>('GET', `${sitePath(site.id)}/guest-links`)
  return { viewers, links }
}

export const viewers: Command = {
  kind: 'service',
  name: 'viewers',
  summary: 'Who may see a drop, and who has looked',
  usage: 'viewers [--drop <slug|id>]',
  options: { drop: dropOption },
  maxPositionals: 0,
  async run(context, args) {
    const { api, terminal } = context
    const site = await chosenDrop(context, args, 'shows')
    const { viewers: listed, links } = await listsOf(api, site)
    terminal.data({ access_mode: site.access_mode, viewers: listed, guest_links: links })
    if (site.access_mode !== 'viewers')
      terminal.note(`${site.slug} is not private: access_mode is ${site.access_mode}.`)
    const rows = [
      ...listed.map((viewer) => [
        plain(viewer.kind === 'domain' ? `@${viewer.value}` : viewer.value),
        viewer.role,
        lookedAt(viewer.last_opened_at),
        viewer.visits > 0 ? countOf(viewer.visits, 'page') : '',
      ]),
      ...links.map((link) => [link.id, plain(link.name) || 'guest link', lookedAt(link.last_opened_at), usesOf(link)]),
    ]
    for (const line of table(rows)) terminal.print(line)
    if (rows.length === 0) terminal.note('No one is named. "dropway share <address>" lets someone see it.')
  },
}

function lookedAt(time: string | null): string {
  return time === null ? 'has not opened it yet' : `last opened ${formatTime(time)} UTC`
}

function usesOf({ uses, max_uses }: GuestLink): string {
  return max_uses === null ? countOf(uses, 'use') : `${uses} of ${countOf(max_uses, 'use')}`
}

export const shared: Command = {
  kind: 'service',
  name: 'shared',
  summary: 'Drops that others share with you',
  usage: 'shared',
  maxPositionals: 0,
  async run({ api, terminal }) {
    const drops = await api.call<SharedDrop[]>('GET', '/shared')
    terminal.data(drops)
    if (drops.length === 0) terminal.note('No one shares a drop with this address.')
    const rows = drops.map((drop) => [
      plain(drop.title),
      plain(drop.shared_by),
      lookedAt(drop.last_opened_at),
      drop.url,
    ])
    for (const line of table(rows)) terminal.print(line)
  },
}
