/** Which drop a folder belongs to, and how it differs: `init`, `link`, `unlink`, `diff`. */
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { findDrop, openNearestProject, requireDrop } from '../content/chosen-drop.ts'
import type { Command, Context } from '../terminal/command.ts'
import { compareWithLive, printChanges } from '../content/comparison.ts'
import { usageError } from '../terminal/failure.ts'
import type { Site } from '../terminal/json-output.ts'
import { openProject } from '../content/project/project.ts'
import { readPublishable } from '../content/publishable.ts'
import { findSource } from '../content/source.ts'

const IGNORE_FILE = `# What stays at home, in the language of .gitignore.
# .git/, node_modules/, .env and the client's own files stay without being listed.
*.map
`

export const init: Command = {
  kind: 'service',
  name: 'init',
  summary: 'Prepare this folder: choose a slug, link it, write .dropwayignore',
  usage: 'init [slug]',
  details: ['Without a slug it asks for one; an empty answer takes one that the service makes up.'],
  maxPositionals: 1,
  async run(context, args) {
    const { terminal, cwd, url, settings } = context
    const project = await openProject(cwd, url, settings.configDir)
    const linked = project.find()
    if (linked !== undefined)
      throw usageError(`This folder is linked to ${linked.slug} already. "dropway unlink" forgets that.`)
    const slug = args.positionals[0] ?? ((await terminal.ask('Slug (empty for a random one): ')) || undefined)
    const site = await ownOrNew(context, slug)
    await project.remember({ id: site.id, slug: site.slug })
    const wrote = await writeIgnoreFile(cwd)
    terminal.note(`Linked to ${site.slug}${wrote ? ', and .dropwayignore written' : ''}. "dropway deploy" publishes.`)
    terminal.print(site.url)
    terminal.data({ id: site.id, slug: site.slug, url: site.url })
  },
}

async function ownOrNew({ api }: Context, slug: string | undefined): Promise<Site> {
  return (
    (slug === undefined ? undefined : await findDrop(api, slug)) ?? api.createSite(slug === undefined ? {} : { slug })
  )
}

/** Writes a first .dropwayignore; false when there is one already. */
function writeIgnoreFile(cwd: string): Promise<boolean> {
  return writeFile(path.join(cwd, '.dropwayignore'), IGNORE_FILE, { flag: 'wx' }).then(
    () => true,
    () => false,
  )
}

export const link: Command = {
  kind: 'service',
  name: 'link',
  summary: 'Link this folder to a drop that you have',
  usage: 'link <slug|id>',
  maxPositionals: 1,
  async run({ api, terminal, cwd, url, settings }, args) {
    const named = args.positionals[0]
    if (named === undefined) throw usageError('Name the drop: dropway link my-drop. "dropway list" shows yours.')
    const site = await requireDrop(api, named)
    await (await openProject(cwd, url, settings.configDir)).remember({ id: site.id, slug: site.slug })
    terminal.print(`This folder is linked to ${site.slug}.`)
    terminal.data({ id: site.id, slug: site.slug, linked: true })
  },
}

export const unlink: Command = {
  kind: 'service',
  name: 'unlink',
  summary: 'Forget which drop this folder is linked to',
  usage: 'unlink',
  details: ['The drop itself stays.'],
  maxPositionals: 0,
  async run(context) {
    const { terminal } = context
    const forgotten = await (await openNearestProject(context)).forget()
    terminal.print(
      forgotten === undefined
        ? 'This folder was not linked to a drop.'
        : `This folder is no longer linked to ${forgotten.slug}.`,
    )
    terminal.data({ unlinked: forgotten !== undefined, slug: forgotten?.slug ?? null })
  },
}

export const diff: Command = {
  kind: 'service',
  name: 'diff',
  summary: 'Compare a folder with what is live',
  usage: 'diff [folder] [--drop <slug|id>]',
  options: {
    drop: { type: 'string', value: 'slug|id', help: 'The drop; else the one that .dropway.json remembers' },
    include: { type: 'string', value: 'pattern', multiple: true, help: 'As with deploy' },
  },
  details: ['Prints a line per file: + new, ~ changed, - removed.'],
  maxPositionals: 1,
  async run(context, args) {
    const source = await findSource(context.cwd, args.positionals[0])
    if (source.kind !== 'folder') throw usageError('Name a folder: dropway diff dist')
    const named = args.text('drop')
    const remembered =
      named === undefined
        ? (await openProject(source.project, context.url, context.settings.configDir)).find()
        : await requireDrop(context.api, named)
    if (remembered === undefined)
      throw usageError('No drop is remembered for this folder. Name one with --drop <slug>, or "dropway link" it.')
    const { files } = await readPublishable(context, source.path, args.texts('include'))
    const changes = await compareWithLive(context, files, { slug: undefined, remembered })
    printChanges(context.terminal, changes)
    context.terminal.data(changes)
  },
}
