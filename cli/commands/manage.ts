/** Commands that change a drop as a whole, or tell how it fares: `delete`, `rename`, `keep`, `settings`, `stats`. */
import { sitePath } from '../service/api-client.ts'
import { chosenDrop, confirmed, openNearestProject, requireDrop } from '../content/chosen-drop.ts'
import { dropOption, yesOption, type Arguments, type Command, type Context } from '../terminal/command.ts'
import { usageError } from '../terminal/failure.ts'
import type { Site } from '../terminal/json-output.ts'
import { countOf, formatTime, plain, table } from '../terminal/terminal.ts'

export const deleteDrop: Command = {
  kind: 'service',
  name: 'delete',
  summary: 'Delete a drop for good',
  usage: 'delete [--drop <slug|id>] [--yes]',
  options: { drop: dropOption, yes: yesOption },
  details: ['The address answers "gone" from then on. This cannot be undone.'],
  maxPositionals: 0,
  async run(context, args) {
    const { api, terminal } = context
    const site = await chosenDrop(context, args, 'changes')
    await confirmed(context, args, `Delete ${site.slug} with all its versions, for good?`)
    await api.call('DELETE', sitePath(site.id))
    const project = await openNearestProject(context)
    if (project.find()?.id === site.id) await project.forget()
    terminal.print(`${site.slug} is deleted.`)
    terminal.data({ id: site.id, slug: site.slug, deleted: true })
  },
}

export const rename: Command = {
  kind: 'service',
  name: 'rename',
  summary: "Change a drop's slug, and with it its address",
  usage: 'rename <new-slug> [--drop <slug|id>]',
  options: { drop: dropOption },
  details: ['The old address leads to the new one for a while.'],
  maxPositionals: 1,
  async run(context, args) {
    const slug = args.positionals[0]
    if (slug === undefined) throw usageError('Name the new slug: dropway rename new-slug')
    const site = await chosenDrop(context, args, 'changes')
    const changed = await context.api.changeSite(site.id, { slug })
    const project = await openNearestProject(context)
    const remembered = project.find()
    if (remembered?.id === site.id) await project.remember({ ...remembered, slug: changed.slug })
    context.terminal.note(`${site.slug} is ${changed.slug} now.`)
    context.terminal.print(changed.url)
    context.terminal.data(changed)
  },
}

export const keep: Command = {
  kind: 'service',
  name: 'keep',
  summary: 'Choose which drops stay live when a plan ends',
  usage: 'keep <slug|id>…',
  details: [
    'At most three, which is what the free plan keeps live; what was published last fills it up.',
    'Where drops are paused already, these come back at once, in the place of others.',
  ],
  maxPositionals: Number.POSITIVE_INFINITY,
  async run({ api, terminal }, args) {
    if (args.positionals.length === 0) throw usageError('Name the drops: dropway keep my-site my-cv')
    const chosen: string[] = []
    for (const named of args.positionals) chosen.push((await requireDrop(api, named)).id)
    const sites = await api.call<Site[]>('PUT', '/sites/staying-live', { json: { site_ids: chosen } })
    terminal.data(sites)
    for (const line of table(sites.map((site) => [site.slug, site.state, chosen.includes(site.id) ? 'stays' : ''])))
      terminal.print(line)
  },
}

export const settings: Command = {
  kind: 'service',
  name: 'settings',
  summary: "Show or change a drop's settings",
  usage: 'settings [--name <text>] [--spa|--no-spa] [--gallery|--no-gallery] [--analytics <json>] [--drop <slug|id>]',
  options: {
    name: { type: 'string', value: 'text', help: 'What the dashboard calls it' },
    spa: { type: 'boolean', help: 'Unknown paths serve index.html' },
    'no-spa': { type: 'boolean', help: 'Unknown paths are 404' },
    gallery: { type: 'boolean', help: 'Show it in the gallery' },
    'no-gallery': { type: 'boolean', help: 'Keep it out of the gallery' },
    analytics: { type: 'string', value: 'json', help: 'Such as {"plausible":{"domain":"example.com"}}' },
    'no-analytics': { type: 'boolean', help: 'Without analytics' },
    drop: dropOption,
  },
  details: ['Without an option it shows them. Slug, password and domains have commands of their own.'],
  maxPositionals: 0,
  async run(context, args) {
    const change = changeOf(args)
    const isChange = Object.keys(change).length > 0
    const site = await chosenDrop(context, args, isChange ? 'changes' : 'shows')
    const shown = isChange ? await context.api.changeSite(site.id, change) : site
    context.terminal.data(shown)
    for (const line of table(settingRows(shown))) context.terminal.print(line)
  },
}

function changeOf(args: Arguments): Record<string, unknown> {
  const change: Record<string, unknown> = {}
  const name = args.text('name')
  if (name !== undefined) change['name'] = name
  for (const [option, field] of [
    ['spa', 'spa_fallback'],
    ['gallery', 'gallery'],
  ] as const) {
    if (args.flag(option) && args.flag(`no-${option}`))
      throw usageError(`--${option} and --no-${option} exclude each other.`)
    if (args.flag(option) || args.flag(`no-${option}`)) change[field] = args.flag(option)
  }
  const analytics = args.text('analytics')
  if (args.flag('no-analytics')) change['analytics'] = null
  else if (analytics !== undefined) change['analytics'] = parseJson(analytics)
  return change
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw usageError('--analytics takes JSON, such as \'{"plausible":{"domain":"example.com"}}\'.')
  }
}

const onOff = (value: boolean): string => (value ? 'on' : 'off')

function settingRows(site: Site): string[][] {
  return [
    ['Slug', site.slug],
    ['Name', plain(site.name)],
    ['Address', site.url],
    ['State', site.state],
    ['Password', onOff(site.has_password)],
    [
      'Seen by',
      site.access_mode === 'viewers' ? 'named viewers' : site.has_password ? 'who knows the password' : 'everyone',
    ],
    ['Single page app', onOff(site.spa_fallback)],
    ['Gallery', onOff(site.gallery)],
    ...(site.expires_at === null ? [] : [['Expires', `${formatTime(site.expires_at)} UTC`]]),
  ]
}

interface DailyViews {
  readonly days: readonly { readonly day: string; readonly count: number }[]
  readonly total: number
}

export const stats: Command = {
  kind: 'service',
  name: 'stats',
  summary: 'Show page views per day',
  usage: 'stats [--days <number>] [--drop <slug|id>]',
  options: {
    days: { type: 'string', value: 'number', help: 'How far back; 30 unless told otherwise' },
    drop: dropOption,
  },
  maxPositionals: 0,
  async run(context, args) {
    const days = args.text('days') ?? '30'
    if (!/^\d{1,3}$/.test(days)) throw usageError('--days takes a number, such as 30.')
    const site = await chosenDrop(context, args, 'shows')
    const views = await context.api.call<DailyViews>('GET', `${sitePath(site.id)}/views?days=${days}`)
    context.terminal.data(views)
    showViews(context, site, views, days)
  },
}

function showViews({ terminal }: Context, site: Site, { days, total }: DailyViews, asked: string): void {
  for (const line of table(days.filter(({ count }) => count > 0).map(({ day, count }) => [day, String(count)])))
    terminal.print(line)
  terminal.print(`${countOf(total, 'view')} of ${site.slug} in ${asked} days.`)
}
