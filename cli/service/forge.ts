/**
 * The forge that a job runs at: which pull request it is for, and the one comment there that we keep up to date.
 * GitHub and Forgejo speak alike; GitLab calls them merge requests and notes.
 */
import { readFileSync } from 'node:fs'

/** A comment of ours begins with this; people do not see it. */
const MARK = '<!-- dropway preview of'
const PAGE_SIZE = 100
/** A pull request with more comments than that gets another one of ours. */
const MAX_PAGES = 10
const ANSWER_MS = 20_000

export interface PullRequest {
  readonly forge: 'github' | 'gitlab' | 'forgejo'
  readonly number: number
  /** It was closed or merged. */
  readonly isClosed: boolean
  /** It comes from a fork, whose jobs get no secrets. */
  readonly isFromFork: boolean
  /** The commit that it is about. */
  readonly commit: string
  /** Where its comments are listed and added. */
  readonly commentsUrl: string
  /** Where one of them is changed. */
  commentUrl(id: number): string
  /** What the forge wants to hear with each request; undefined where the job has no token. */
  readonly credentials: Readonly<Record<string, string>> | undefined
  readonly changeMethod: 'PATCH' | 'PUT'
}

export type Environment = Readonly<Record<string, string | undefined>>

/** The pull request that this job is for; undefined where it is for none. */
export function readPullRequest(env: Environment): PullRequest | undefined {
  if (env['GITLAB_CI'] === 'true') return readGitlab(env)
  if (env['GITHUB_ACTIONS'] === 'true' || env['FORGEJO_ACTIONS'] === 'true' || env['GITEA_ACTIONS'] === 'true')
    return readActions(env)
  return undefined
}

interface ActionsEvent {
  readonly action?: string
  readonly pull_request?: {
    readonly number: number
    readonly head: { readonly sha: string; readonly repo: { readonly full_name: string } | null }
    readonly base: { readonly repo: { readonly full_name: string } }
  }
}

function readActions(env: Environment): PullRequest | undefined {
  const file = env['GITHUB_EVENT_PATH']
  const event = file === undefined ? {} : (JSON.parse(readFileSync(file, 'utf8')) as ActionsEvent)
  const pull = event.pull_request
  if (pull === undefined) return undefined
  const isForgejo = env['FORGEJO_ACTIONS'] === 'true' || env['GITEA_ACTIONS'] === 'true'
  const repository = `${env['GITHUB_API_URL'] ?? 'https://api.github.com'}/repos/${pull.base.repo.full_name}`
  const token = env['GITHUB_TOKEN'] || env['FORGEJO_TOKEN']
  return {
    forge: isForgejo ? 'forgejo' : 'github',
    number: pull.number,
    isClosed: event.action === 'closed',
    isFromFork: pull.head.repo?.full_name !== pull.base.repo.full_name,
    commit: pull.head.sha,
    commentsUrl: `${repository}/issues/${pull.number}/comments`,
    commentUrl: (id) => `${repository}/issues/comments/${id}`,
    credentials: token ? { authorization: `${isForgejo ? 'token' : 'Bearer'} ${token}` } : undefined,
    changeMethod: 'PATCH',
  }
}

function readGitlab(env: Environment): PullRequest | undefined {
  const number = Number(env['CI_MERGE_REQUEST_IID'])
  if (!Number.isInteger(number) || number < 1) return undefined
  const project = env['CI_MERGE_REQUEST_PROJECT_ID'] ?? env['CI_PROJECT_ID'] ?? ''
  const notes = `${env['CI_API_V4_URL'] ?? 'https://gitlab.com/api/v4'}/projects/${project}/merge_requests/${number}/notes`
  const token = env['GITLAB_TOKEN']
  return {
    forge: 'gitlab',
    number,
    isClosed: env['CI_ENVIRONMENT_ACTION'] === 'stop',
    isFromFork: (env['CI_MERGE_REQUEST_SOURCE_PROJECT_ID'] ?? project) !== project,
    commit: env['CI_COMMIT_SHA'] ?? '',
    commentsUrl: notes,
    commentUrl: (id) => `${notes}/${id}`,
    credentials: token ? { 'private-token': token } : undefined,
    changeMethod: 'PUT',
  }
}

/** Writes our comment, or changes it where there is one. Throws what the forge refused. */
export async function writeComment(pull: PullRequest, drop: string, text: string): Promise<'added' | 'changed'> {
  const mark = `${MARK} ${drop} -->`
  const body = `${mark}\n${text}`
  const own = await findComment(pull, mark)
  if (own === undefined) await ask(pull, 'POST', pull.commentsUrl, { body })
  else await ask(pull, pull.changeMethod, pull.commentUrl(own), { body })
  return own === undefined ? 'added' : 'changed'
}

async function findComment(pull: PullRequest, mark: string): Promise<number | undefined> {
  for (let page = 1; page <= MAX_PAGES; page++) {
    const address = `${pull.commentsUrl}?per_page=${PAGE_SIZE}&limit=${PAGE_SIZE}&page=${page}`
    const comments = (await ask(pull, 'GET', address)) as { id: number; body: string }[]
    const own = comments.find(({ body }) => body.startsWith(mark))
    if (own !== undefined) return own.id
    if (comments.length < PAGE_SIZE) return undefined
  }
  return undefined
}

async function ask(pull: PullRequest, method: string, address: string, json?: unknown): Promise<unknown> {
  const answer = await fetch(address, {
    method,
    headers: {
      accept: 'application/json',
      'user-agent': 'dropway',
      ...pull.credentials,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  if (!answer.ok) throw new Error(`${pull.forge} answered ${answer.status} to ${method} ${new URL(address).pathname}`)
  return answer.json()
}
