/** `dropway pull-request`: a preview for each pull request of a forge, and one comment there that says where it is. */
import { sitePath } from '../../service/api-client.ts'
import { ApiFailure } from '../../service/api-failure.ts'
import { readPullRequest, writeComment, type PullRequest } from '../../service/forge.ts'
import { exchangeIdentity } from '../../service/sign-in/workflow.ts'
import { requireDrop } from '../../content/chosen-drop.ts'
import type { Arguments, Command, Context } from '../../terminal/command.ts'
import { CliError, usageError } from '../../terminal/failure.ts'
import { countOf, plain } from '../../terminal/terminal.ts'
import { bytesInWords } from '../../../shared/values/sizes.ts'
import { deploySource, type DeployOutcome } from './deploy.ts'

/** As many as a reviewer reads. */
const SHOWN_WARNINGS = 10

export const pullRequest: Command = {
  kind: 'service',
  patient: true,
  name: 'pull-request',
  summary: 'In CI: publish a pull request to a preview, and say so in a comment',
  usage: 'pull-request [folder] --slug <slug> [--close] [--spa]',
  options: {
    slug: { type: 'string', value: 'slug', help: 'The drop whose preview it is' },
    close: { type: 'boolean', help: 'Remove the preview, whatever the event says' },
    spa: { type: 'boolean', help: 'Unknown paths serve index.html' },
  },
  details: [
    'Reads what GitHub, GitLab and Forgejo say of the job. The preview is called pr-<number>.',
    'When the pull request is closed, the preview goes.',
    'No token is needed where the drop trusts the workflow, with its pull requests ("dropway publishers add --pull-requests").',
    'Jobs of a fork that get neither publish nothing, and succeed.',
    'A token of the forge in GITHUB_TOKEN, GITLAB_TOKEN or FORGEJO_TOKEN lets it write the comment.',
  ],
  maxPositionals: 1,
  async run(context, args) {
    const pull = readPullRequest(process.env)
    if (pull === undefined) throw usageError('This job is for no pull request. Use "dropway deploy" elsewhere.')
    const slug = args.text('slug')
    if (slug === undefined) throw usageError('Name the drop: dropway pull-request dist --slug my-site')
    // A workflow that the drop trusts needs no token; that of a fork may have neither.
    if (!context.settings.token && context.settings.workflow === undefined) return skip(context, pull)
    const work = pull.isClosed || args.flag('close') ? close(context, pull, slug) : publish(context, args, pull, slug)
    await work.catch((error: unknown) => {
      const isClosedToForks = pull.isFromFork && error instanceof CliError && error.code === 'not_trusted'
      if (!isClosedToForks) throw error
      skip(context, pull)
    })
  },
}

function previewOf({ number }: PullRequest): string {
  return `pr-${number}`
}

/** Without a token there is nothing to do that would not fail: the check of a fork stays green. */
function skip({ terminal }: Context, { isFromFork }: PullRequest): void {
  if (!isFromFork)
    throw usageError(
      'Let the drop trust this workflow ("dropway publishers add"), or set DROPWAY_TOKEN to an API token.',
    )
  terminal.note('This pull request comes from a fork, which this drop does not take. Nothing is published.')
  terminal.data({ skipped: 'fork' })
}

async function publish(context: Context, args: Arguments, pull: PullRequest, slug: string): Promise<void> {
  const preview = previewOf(pull)
  const given: Readonly<Record<string, string | undefined>> = {
    preview,
    message: `#${pull.number} ${pull.commit.slice(0, 12)}`,
  }
  const asDeploy: Arguments = {
    positionals: args.positionals,
    texts: (name) => args.texts(name),
    text: (name) => (name in given ? given[name] : args.text(name)),
    flag: (name) => (name === 'yes' ? true : args.flag(name)),
  }
  const outcome = await deploySource(context, asDeploy)
  const url = outcome.version?.preview_url ?? outcome.site.url
  await comment(context, pull, slug, aboutPreview(pull, outcome, url))
  context.terminal.print(url)
  context.terminal.data({ url, preview, version: outcome.version ?? null })
}

async function close(context: Context, pull: PullRequest, slug: string): Promise<void> {
  const preview = previewOf(pull)
  const { settings, url, http } = context
  const { workflow } = settings
  if (!settings.token && workflow !== undefined)
    await context.authentication.actAs(() => exchangeIdentity(workflow, { origin: url, site: slug, preview, http }))
  const site = await requireDrop(context.api, slug)
  await context.api.call('DELETE', `${sitePath(site.id)}/previews/${preview}`).catch((error: unknown) => {
    // It was never published, or its time is over.
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error
  })
  await comment(context, pull, slug, `The preview of this pull request is removed.`)
  context.terminal.print(`The preview ${preview} of ${site.slug} is removed.`)
  context.terminal.data({ preview, removed: true })
}

/** The publish stands, whatever becomes of the comment: its token may only read. */
async function comment({ terminal }: Context, pull: PullRequest, slug: string, text: string): Promise<void> {
  if (pull.credentials === undefined) {
    terminal.note(`There is no token of ${pull.forge}, so that no comment is written.`)
    return
  }
  try {
    await writeComment(pull, slug, text)
  } catch (error) {
    terminal.note(`The comment could not be written: ${plain((error as Error).message)}`)
  }
}

function aboutPreview(pull: PullRequest, { version }: DeployOutcome, url: string): string {
  const warnings = version?.report?.warnings ?? []
  const shown = warnings
    .slice(0, SHOWN_WARNINGS)
    .map(({ path, message }) => `- ${path === undefined ? '' : `${code(path)}: `}${inline(message)}`)
  const more = warnings.length > SHOWN_WARNINGS ? [`- and ${warnings.length - SHOWN_WARNINGS} more`] : []
  const size =
    version === undefined ? '' : ` (${countOf(version.file_count, 'file')}, ${bytesInWords(version.byte_size)})`
  return [
    `**Preview:** ${url}`,
    '',
    `Commit ${code(pull.commit.slice(0, 12))}${size}.`,
    ...(shown.length === 0 ? [] : ['', `${countOf(warnings.length, 'thing')} to look at:`, '', ...shown, ...more]),
  ].join('\n')
}

/** Names of files and what is said of them are the pull request's own: they stay text. */
function code(text: string): string {
  return `\`${plain(text).replaceAll('`', "'").replaceAll(/\s+/g, ' ')}\``
}

function inline(text: string): string {
  return plain(text)
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[<>@[\]()!*_`|\\]/g, (char) => `\\${char}`)
}
