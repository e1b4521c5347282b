/** Commands about drops that exist: `list`, `open`, `versions`, `rollback`, `promote`, `previews`, `password`, `export`. */
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { clockNotices } from '../../shared/values/clock-notice.ts'
import { sitePath } from '../service/api-client.ts'
import { openBrowser } from '../terminal/browser.ts'
import { chosenDrop, confirmed } from '../content/chosen-drop.ts'
import { EXPORT_NAME, marked, objectionTo, writeExport } from '../content/exports.ts'
import { dropOption, yesOption, type Command, type Context } from '../terminal/command.ts'
import { CliError, exitCodes, usageError } from '../terminal/failure.ts'
import type { Preview, Version, VersionEntry } from '../terminal/json-output.ts'
import { countOf, formatTime, plain, table } from '../terminal/terminal.ts'
import { bytesInWords } from '../../shared/values/sizes.ts'
import { unknownWord } from '../terminal/unknown-word.ts'

/** More words find nothing more. */
const MAX_WORDS = 12

export const list: Command = {
  kind: 'service',
  name: 'list',
  summary: 'List your drops, or those that have some words',
  usage: 'list [words…]',
  details: ['Words are looked for in names, titles and the text of pages; a drop must have all of them.'],
  maxPositionals: MAX_WORDS,
  async run({ api, terminal, url }, args) {
    const words = args.positionals.join(' ').trim()
    const sites = await api.listSites(words)
    terminal.data(sites)
    if (sites.length === 0)
      terminal.note(
        words === '' ? 'You have no drops yet. "dropway deploy" makes one.' : `No drop has "${plain(words)}".`,
      )
    const rows = sites.map((site) => [site.slug, site.state, `${site.views_30d} views`, plain(site.name), site.url])
    for (const line of table(rows)) terminal.print(line)
    for (const notice of clockNotices(sites, url, Date.now())) terminal.note(notice)
  },
}

export const open: Command = {
  kind: 'service',
  name: 'open',
  summary: 'Open the drop in the browser',
  usage: 'open [--drop <slug|id>]',
  options: { drop: dropOption },
  maxPositionals: 0,
  async run(context, args) {
    const site = await chosenDrop(context, args, 'shows')
    const opened = await openBrowser(site.url, context.settings.browser)
    if (!opened) context.terminal.note('No browser could be started; open the address yourself.')
    context.terminal.print(site.url)
    context.terminal.data({ url: site.url, opened })
  },
}

export const versions: Command = {
  kind: 'service',
  name: 'versions',
  summary: 'List the retained versions, newest first',
  usage: 'versions [--drop <slug|id>]',
  options: { drop: dropOption },
  maxPositionals: 0,
  async run(context, args) {
    const site = await chosenDrop(context, args, 'shows')
    const entries = await context.api.listVersions(site.id)
    context.terminal.data(entries)
    if (entries.length === 0) context.terminal.note('Nothing has been published to this drop yet.')
    for (const line of table(entries.map(versionRow))) context.terminal.print(line)
  },
}

function versionRow(entry: VersionEntry): string[] {
  return [
    String(entry.version_number),
    entry.live ? 'live' : '',
    formatTime(entry.created_at),
    countOf(entry.file_count, 'file'),
    bytesInWords(entry.byte_size),
    plain(entry.message ?? ''),
    entry.version_id,
    lastPromotion(entry),
  ]
}

function lastPromotion({ promotions: [last] = [] }: VersionEntry): string {
  if (last === undefined) return ''
  const instead = last.from_version_number === null ? '' : ` instead of ${last.from_version_number}`
  return `live again ${formatTime(last.at)}${instead}${last.by === null ? '' : ` by ${plain(last.by)}`}`
}

export const rollback: Command = {
  kind: 'service',
  name: 'rollback',
  summary: 'Make an earlier version live again',
  usage: 'rollback [number|version_id] [--drop <slug|id>]',
  options: { drop: dropOption },
  details: ['Without a number: the version before the live one. Going forward again works the same way.'],
  maxPositionals: 1,
  async run(context, args) {
    const site = await chosenDrop(context, args, 'changes')
    const target = chooseVersion(await context.api.listVersions(site.id), args.positionals[0])
    const version = await context.api.promote(site.id, target.version_id)
    context.terminal.note(`Version ${version.version_number} is live.`)
    context.terminal.print(site.url)
    context.terminal.data({ url: site.url, version })
  },
}

/** Versions come newest first. */
function chooseVersion(entries: readonly VersionEntry[], wanted: string | undefined): VersionEntry {
  const live = entries.find((entry) => entry.live)
  const target =
    wanted === undefined
      ? entries.find((entry) => live !== undefined && entry.version_number < live.version_number)
      : entries.find(
          (entry) => entry.version_id === wanted || String(entry.version_number) === wanted.replace(/^v/, ''),
        )
  if (target !== undefined) return target
  const reason =
    wanted === undefined ? 'There is no version before the live one.' : `There is no version "${wanted}" to go to.`
  throw new CliError(`${reason} "dropway versions" shows what is kept.`, exitCodes.failed, 'not_found')
}

export const password: Command = {
  kind: 'service',
  name: 'password',
  summary: 'Ask visitors for a password, or stop asking',
  usage: 'password set|clear [--drop <slug|id>] [--yes]',
  options: { drop: dropOption, yes: yesOption },
  details: [
    '"set" asks for the password, or reads it from stdin: it never stands in the command line.',
    '"clear" lets everyone see the drop; asks first.',
  ],
  words: ['set', 'clear'],
  maxPositionals: 1,
  async run(context, args) {
    const action = args.positionals[0]
    if (action !== 'set' && action !== 'clear')
      throw unknownWord('action', action, ['set', 'clear'], 'dropway password set')
    const site = await chosenDrop(context, args, 'changes')
    const value = action === 'set' ? await readPassword(context) : null
    if (value === null && site.has_password) await confirmed(context, args, `Let everyone see ${site.url}?`)
    const changed = await context.api.changeSite(site.id, { password: value })
    context.terminal.print(
      changed.has_password
        ? `${site.url} now asks for the password.`
        : changed.access_mode === 'viewers'
          ? `${site.url} has no password: only its viewers see it.`
          : `${site.url} is open to everyone.`,
    )
    context.terminal.data({ id: changed.id, has_password: changed.has_password })
  },
}

async function readPassword({ terminal }: Context): Promise<string> {
  const typed = await terminal.ask('Password: ', { hidden: true })
  const text = typed ?? (await firstLine(terminal.stdin))
  if (text === '') throw usageError('The password must not be empty. "dropway password clear" removes it.')
  return text
}

async function firstLine(stdin: NodeJS.ReadableStream): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk))
  const [line = ''] = Buffer.concat(chunks).toString('utf8').split(/\r?\n/, 1)
  return line
}

export const exportAll: Command = {
  kind: 'service',
  patient: true,
  name: 'export',
  summary: 'Download every drop as one .zip',
  usage: 'export [file.zip|-] [--yes]',
  options: { yes: yesOption },
  details: [
    `Without a name: ${EXPORT_NAME} in your home folder. "-" writes the archive to stdout.`,
    'It asks before it writes into a project or replaces a file; --yes answers where no one can.',
    'The archive holds protected drops too. Under any name, no deploy publishes it.',
  ],
  maxPositionals: 1,
  async run({ api, cwd, settings, terminal }, args) {
    const [target] = args.positionals
    if (target === '-' && terminal.json) throw usageError('--json and "-" both want stdout. Name a file.')
    if (target === '-') {
      const { body } = await api.stream('GET', '/sites/export')
      return pipeline(marked(body), terminal.stdout, { end: false })
    }
    const file = target === undefined ? path.join(settings.home, EXPORT_NAME) : path.resolve(cwd, target)
    const objection = await objectionTo(file, settings.home)
    if (objection !== undefined) await confirmed({ terminal }, args, `${objection} Write the export to ${file}?`)
    const { body } = await api.stream('GET', '/sites/export')
    const size = await writeExport(body, file)
    terminal.note(bytesInWords(size))
    terminal.print(file)
    terminal.data({ file, byte_size: size })
  },
}

function previewPath(siteId: string, name: string): ReturnType<typeof sitePath> {
  return `${sitePath(siteId)}/previews/${encodeURIComponent(name)}`
}

export const promote: Command = {
  kind: 'service',
  name: 'promote',
  summary: 'Make what a named preview shows live',
  usage: 'promote <name> [--drop <slug|id>]',
  options: { drop: dropOption },
  details: ['"dropway deploy --preview <name>" publishes to a preview; the name stays when its version goes live.'],
  maxPositionals: 1,
  async run(context, args) {
    const name = args.positionals[0]
    if (name === undefined) throw usageError('Name the preview: dropway promote pr-12')
    const site = await chosenDrop(context, args, 'changes')
    const version = await context.api.call<Version>('POST', `${previewPath(site.id, name)}/promote`)
    context.terminal.note(`Version ${version.version_number} is live.`)
    context.terminal.print(site.url)
    context.terminal.data({ url: site.url, version })
  },
}

export const previews: Command = {
  kind: 'service',
  name: 'previews',
  summary: 'List named previews, or remove one',
  usage: 'previews [remove <name>] [--drop <slug|id>]',
  options: { drop: dropOption },
  details: ['A preview goes 30 days after its last publish.'],
  words: ['remove'],
  maxPositionals: 2,
  async run(context, args) {
    const [word, name] = args.positionals
    const { api, terminal } = context
    if (word === undefined) {
      const site = await chosenDrop(context, args, 'shows')
      const list = await api.call<Preview[]>('GET', `${sitePath(site.id)}/previews`)
      terminal.data(list)
      if (list.length === 0) terminal.note('There are no previews. "dropway deploy --preview <name>" makes one.')
      const rows = list.map((each) => [
        each.name,
        `version ${each.version_number}`,
        formatTime(each.published_at),
        each.url ?? '',
      ])
      for (const line of table(rows)) terminal.print(line)
      return
    }
    if (word !== 'remove') throw unknownWord('deed', word, ['remove'], 'dropway previews remove pr-12')
    if (name === undefined) throw usageError('Name the preview: dropway previews remove pr-12')
    const site = await chosenDrop(context, args, 'changes')
    await api.call('DELETE', previewPath(site.id, name))
    terminal.print(`The preview ${name} of ${site.slug} is removed.`)
    terminal.data({ name, removed: true })
  },
}
