/** Commands about what people say of a drop: `threads`, `resolve`. */
import { requireDrop, chosenDrop } from '../../content/chosen-drop.ts'
import { sitePath } from '../../service/api-client.ts'
import { dropOption, type Arguments, type Command, type Context } from '../../terminal/command.ts'
import { CliError, exitCodes, usageError } from '../../terminal/failure.ts'
import type { Site, Thread } from '../../terminal/json-output.ts'
import { countOf, plain } from '../../terminal/terminal.ts'

const STATES = ['open', 'resolved', 'all']
const LABELS = ['must', 'nice']
/** As much of a quote or a message as fits a line or two. */
const MAX_SHOWN = 200

export const threads: Command = {
  kind: 'service',
  name: 'threads',
  summary: 'List what people say about a drop',
  usage: 'threads [slug] [--state open|resolved|all] [--label must|nice] [--drop <slug|id>]',
  options: {
    state: { type: 'string', value: 'state', help: 'open (as without it), resolved or all' },
    label: { type: 'string', value: 'label', help: 'Only those that are labelled must, or nice' },
    drop: dropOption,
  },
  details: [
    'Each with its id, the page, the words that it is about, and the file and line that say so where that can be told.',
    '"dropway resolve <thread>" resolves one; "dropway deploy --resolves <thread>" does so with the version that mends it.',
  ],
  maxPositionals: 1,
  async run(context, args) {
    const { api, terminal } = context
    const state = args.text('state') ?? 'open'
    if (!STATES.includes(state)) throw usageError('--state is open, resolved or all.')
    const label = args.text('label')
    if (label !== undefined && !LABELS.includes(label)) throw usageError('--label is must or nice.')
    const [slug] = args.positionals
    const site = slug === undefined ? await chosenDrop(context, args, 'shows') : await requireDrop(api, slug)
    const list = await threadsOf(context, site, { state, label })
    terminal.data(list)
    if (list.length === 0)
      terminal.note(
        `Nothing ${state === 'all' ? '' : `${state} `}${label === undefined ? '' : `labelled ${label} `}is said about ${site.slug}.`,
      )
    for (const thread of list) for (const line of linesOf(thread)) terminal.print(line)
    if (list.length > 0) terminal.note(countOf(list.length, 'thread'))
  },
}

export const resolve: Command = {
  kind: 'service',
  name: 'resolve',
  summary: 'Resolve threads, or reopen them',
  usage: 'resolve <thread …> [--message <text>] [--reopen] [--drop <slug|id>]',
  options: {
    message: { type: 'string', value: 'text', help: 'Answer with this, too' },
    reopen: { type: 'boolean', help: 'Open them again instead' },
    drop: dropOption,
  },
  details: ['"dropway threads" shows the ids.'],
  maxPositionals: 100,
  async run(context, args) {
    const ids = args.positionals
    if (ids.length === 0) throw usageError('Name the thread: dropway resolve th_…')
    const state = args.flag('reopen') ? 'open' : 'resolved'
    const message = args.text('message')
    const site = await dropOf(context, args, ids)
    const changed: Thread[] = []
    for (const id of ids) {
      const path = `${sitePath(site.id)}/threads/${encodeURIComponent(id)}` as const
      if (message !== undefined) await context.api.call('POST', `${path}/messages`, { json: { body: message } })
      changed.push(await context.api.call<Thread>('PATCH', path, { json: { state } }))
    }
    context.terminal.print(`${countOf(changed.length, 'thread')} of ${site.slug} ${state}.`)
    context.terminal.data(changed)
  },
}

function threadsOf(
  { api }: Pick<Context, 'api'>,
  site: Site,
  { state, label }: { state: string; label?: string | undefined },
): Promise<Thread[]> {
  const query = `state=${state}${label === undefined ? '' : `&label=${label}`}`
  return api
    .call<{ threads: Thread[] }>('GET', `${sitePath(site.id)}/threads?${query}`)
    .then(({ threads: list }) => list)
}

/** The drop that is named or remembered; else the one of the account that has the first of the threads. */
async function dropOf(context: Context, args: Arguments, [first = '']: readonly string[]): Promise<Site> {
  if (args.text('drop') !== undefined) return chosenDrop(context, args, 'changes')
  for (const site of await context.api.call<Site[]>('GET', '/sites')) {
    const list = await threadsOf(context, site, { state: 'all' })
    if (list.some(({ id }) => id === first)) return site
  }
  throw new CliError(`None of your drops has a thread "${first}".`, exitCodes.failed, 'not_found')
}

/** What strangers wrote is shown as text: nothing in it moves the cursor or changes colours. */
function linesOf(thread: Thread): string[] {
  const { id, page, state, label, placement, anchor, found, messages } = thread
  const where = found?.file === undefined ? '' : `  ${found.file}${found.line === undefined ? '' : `:${found.line}`}`
  const facts = [state, label, placement === 'same' ? null : placement].filter((fact) => fact !== null).join(', ')
  return [
    `${id}  ${plain(page)}${plain(where)}  (${facts})`,
    ...(anchor ? [`  ${placeOf(anchor)}`] : []),
    ...messages.map(({ author, body }) => `  ${shown(author.name)}: ${shown(body)}`),
  ]
}

/** The words, or which element it is where it has none. */
function placeOf({ exact, element = '', src = '' }: NonNullable<Thread['anchor']>): string {
  return exact === '' ? shown(`${element} ${src}`) : `"${shown(exact)}"`
}

function shown(text: string): string {
  const line = plain(text).replace(/\s+/g, ' ')
  return line.length <= MAX_SHOWN ? line : `${line.slice(0, MAX_SHOWN)}…`
}
