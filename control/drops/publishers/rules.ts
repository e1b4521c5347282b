/**
 * Whether a workflow's token is the one that a drop trusts: no I/O, no clock. A token reaches this after its signature,
 * issuer, audience and times were found good. Every refusal has a reason, which the audit log tells and the caller never hears.
 */
import { z } from 'zod'
import type { WorkflowRun } from '../../ground/actor.ts'

export const PROVIDERS = ['github', 'gitlab', 'forgejo', 'oidc'] as const
export type Provider = (typeof PROVIDERS)[number]

/** Forges that every installation trusts to say who runs; others are named by the operator (`TRUSTED_ISSUERS`). */
export const BUILT_IN_ISSUERS: Readonly<Partial<Record<Provider, string>>> = {
  github: 'https://token.actions.githubusercontent.com',
  gitlab: 'https://gitlab.com',
  forgejo: 'https://codeberg.org/api/actions',
}

export type RefusalReason =
  | 'no_publisher'
  | 'oversized'
  | 'malformed'
  | 'algorithm'
  | 'issuer'
  | 'unknown_key'
  | 'keys_unavailable'
  | 'signature'
  | 'audience'
  | 'expired'
  | 'not_yet_valid'
  | 'no_jti'
  | 'replay'
  | 'subject'
  | 'repository'
  | 'repository_id'
  | 'owner_id'
  | 'fork'
  | 'preview'
  | 'ref'
  | 'workflow'
  | 'environment'
  | 'claims'

/** How far a token came before it was refused: of several publishers, the one that nearly matched says why. */
export const REASONS: readonly RefusalReason[] = [
  'no_publisher',
  'oversized',
  'malformed',
  'algorithm',
  'issuer',
  'unknown_key',
  'keys_unavailable',
  'signature',
  'audience',
  'expired',
  'not_yet_valid',
  'no_jti',
  'replay',
  'repository',
  'subject',
  'repository_id',
  'owner_id',
  'fork',
  'preview',
  'ref',
  'workflow',
  'environment',
  'claims',
]

/** What a drop trusts. */
export interface TrustedWorkflow {
  readonly provider: Provider
  readonly issuer: string
  readonly repository: string
  readonly workflow: string | null
  readonly branch: string | null
  readonly environment: string | null
  readonly repositoryId: string | null
  readonly ownerId: string | null
  readonly claims: Readonly<Record<string, string>>
  /** Pull requests, those of forks too, publish to a preview of their own; otherwise they publish nothing. */
  readonly pullRequests: boolean
}

export type Claims = Readonly<Record<string, unknown>>

/** What every forge says in its own words. */
interface ForgeRun {
  readonly repository: string
  readonly repositoryId: string
  readonly ownerId: string
  /** `refs/heads/main`, `refs/tags/v1`. */
  readonly ref: string
  /** The file's name. */
  readonly workflow: string
  readonly environment: string
  /** A change that someone proposed: its author may be anybody. */
  readonly isProposal: boolean
  /** The number of the pull request; empty where the forge does not say it. */
  readonly number: string
  /** The branch that a change is proposed for; empty where the forge does not say it. */
  readonly base: string
  readonly commit: string
  readonly actor: string
}

export type Judgement =
  | {
      readonly kind: 'trusted'
      readonly run: WorkflowRun
      readonly ids: { repositoryId: string; ownerId: string } | null
      /** The only preview that it publishes to; null for the drop itself. */
      readonly preview: string | null
    }
  | { readonly kind: 'refused'; readonly reason: RefusalReason }

const refused = (reason: RefusalReason): Judgement => ({ kind: 'refused', reason })

/** A claim as text; forges write ids as text or as numbers. Anything else is as good as absent. */
function textOf(claims: Claims, name: string): string {
  const value = claims[name]
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}

/** `octo/site/.github/workflows/deploy.yml@refs/heads/main` → `deploy.yml`. */
function fileNameOf(workflowRef: string): string {
  return (workflowRef.split('@')[0] ?? '').split('/').at(-1) ?? ''
}

/** GitHub's claims, which Forgejo has taken over. */
function readGithub(claims: Claims): ForgeRun {
  const ref = textOf(claims, 'ref')
  const workflowRef = textOf(claims, 'workflow_ref')
  return {
    repository: textOf(claims, 'repository'),
    repositoryId: textOf(claims, 'repository_id'),
    ownerId: textOf(claims, 'repository_owner_id'),
    ref,
    workflow: workflowRef === '' ? fileNameOf(textOf(claims, 'workflow')) : fileNameOf(workflowRef),
    environment: textOf(claims, 'environment'),
    isProposal: textOf(claims, 'event_name').startsWith('pull_request') || ref.startsWith('refs/pull/'),
    number: /^refs\/pull\/(\d{1,10})\//.exec(ref)?.[1] ?? '',
    base: textOf(claims, 'base_ref'),
    commit: textOf(claims, 'sha'),
    actor: textOf(claims, 'actor'),
  }
}

function readGitlab(claims: Claims): ForgeRun {
  const kind = textOf(claims, 'ref_type') === 'tag' ? 'tags' : 'heads'
  const ref = textOf(claims, 'ref')
  return {
    repository: textOf(claims, 'project_path'),
    repositoryId: textOf(claims, 'project_id'),
    ownerId: textOf(claims, 'namespace_id'),
    ref: ref.startsWith('refs/') ? ref : `refs/${kind}/${ref}`,
    workflow: fileNameOf(textOf(claims, 'ci_config_ref_uri')),
    environment: textOf(claims, 'environment'),
    isProposal:
      ['merge_request_event', 'external_pull_request_event'].includes(textOf(claims, 'pipeline_source')) ||
      ref.startsWith('refs/merge-requests/'),
    number: /^refs\/merge-requests\/(\d{1,10})\//.exec(ref)?.[1] ?? '',
    base: '',
    commit: textOf(claims, 'sha'),
    actor: textOf(claims, 'user_login'),
  }
}

/** `preview`: the one that the job asked for, which limits what it gets; null when it asked for none. */
export function judgeRun(trusted: TrustedWorkflow, claims: Claims, preview: string | null): Judgement {
  switch (trusted.provider) {
    case 'github':
    case 'forgejo':
      return judgeForge(trusted, readGithub(claims), preview)
    case 'gitlab':
      return judgeForge(trusted, readGitlab(claims), preview)
    case 'oidc':
      return judgeSubject(trusted, claims, preview)
    default:
      return trusted.provider satisfies never
  }
}

/** In this order: whose it is, then whether that is still the same one, then which run of it. */
function judgeForge(trusted: TrustedWorkflow, run: ForgeRun, asked: string | null): Judgement {
  // Forges do not tell names apart by case.
  if (run.repository.toLowerCase() !== trusted.repository.toLowerCase()) return refused('repository')
  if (run.repositoryId === '' || (trusted.repositoryId !== null && trusted.repositoryId !== run.repositoryId))
    return refused('repository_id')
  if (run.ownerId === '' || (trusted.ownerId !== null && trusted.ownerId !== run.ownerId)) return refused('owner_id')
  if (run.isProposal && !trusted.pullRequests) return refused('fork')
  const preview = run.isProposal ? previewOfProposal(run, asked) : asked
  if (preview === undefined) return refused('preview')
  if (!isTrustedRef(trusted, run)) return refused('ref')
  if (trusted.workflow !== null && run.workflow !== trusted.workflow) return refused('workflow')
  if (trusted.environment !== null && run.environment !== trusted.environment) return refused('environment')
  return {
    kind: 'trusted',
    ids: { repositoryId: run.repositoryId, ownerId: run.ownerId },
    run: shownRun(trusted, { ...run, repository: run.repository }),
    preview,
  }
}

/**
 * The preview of a pull request, `pr-12`; undefined when the job asked for another. Where the forge does not say the
 * number, the job does: what it can reach is the preview of another pull request, and nothing else.
 */
function previewOfProposal({ number }: ForgeRun, asked: string | null): string | undefined {
  const own = number === '' ? asked : `pr-${number}`
  const isOwn = own !== null && /^pr-\d{1,10}$/.test(own) && (asked === null || asked === own)
  return isOwn ? own : undefined
}

/** A branch or a tag; of a proposal, the branch that it is for, where the forge says it. */
function isTrustedRef({ branch }: TrustedWorkflow, { ref, base, isProposal }: ForgeRun): boolean {
  if (isProposal) return branch === null || base === '' || base === branch
  return /^refs\/(?:heads|tags)\/./.test(ref) && (branch === null || ref === `refs/heads/${branch}`)
}

function judgeSubject(trusted: TrustedWorkflow, claims: Claims, preview: string | null): Judgement {
  const { sub = trusted.repository, ...others } = trusted.claims
  if (textOf(claims, 'sub') !== sub) return refused('subject')
  if (trusted.environment !== null && textOf(claims, 'environment') !== trusted.environment)
    return refused('environment')
  if (trusted.workflow !== null && fileNameOf(textOf(claims, 'workflow')) !== trusted.workflow)
    return refused('workflow')
  if (trusted.branch !== null && ![trusted.branch, `refs/heads/${trusted.branch}`].includes(textOf(claims, 'ref')))
    return refused('ref')
  if (Object.entries(others).some(([name, value]) => textOf(claims, name) !== value)) return refused('claims')
  const run = {
    repository: sub,
    workflow: fileNameOf(textOf(claims, 'workflow')),
    commit: textOf(claims, 'sha'),
    actor: textOf(claims, 'actor'),
  }
  return { kind: 'trusted', ids: null, run: shownRun(trusted, run), preview }
}

/** What is shown to people and kept with versions: bounded, because a forge of the operator's choice wrote it. */
function shownRun(
  { provider, issuer }: TrustedWorkflow,
  run: Pick<ForgeRun, 'repository' | 'workflow' | 'commit' | 'actor'>,
): WorkflowRun {
  const bounded = (text: string): string => text.slice(0, 200)
  return {
    provider,
    issuer,
    repository: bounded(run.repository),
    workflow: bounded(run.workflow),
    commit: /^[0-9a-f]{7,64}$/i.test(run.commit) ? run.commit.toLowerCase() : '',
    actor: bounded(run.actor),
  }
}

const name = z.string().trim().min(1).max(200)
const forgeId = z
  .union([z.string().regex(/^\d{1,20}$/, 'must be a number'), z.int().nonnegative()])
  .transform((value) => String(value))

export const publisherFields = {
  provider: z.enum(PROVIDERS),
  issuer: z.string().max(300).optional(),
  repository: name.optional(),
  workflow: z
    .string()
    .regex(/^[\w.-]{1,100}\.ya?ml$/, "must be the file's name, such as deploy.yml")
    .optional(),
  branch: name.optional(),
  environment: name.optional(),
  repository_id: forgeId.optional(),
  owner_id: forgeId.optional(),
  pull_requests: z.boolean().optional(),
  claims: z
    .record(z.string().min(1).max(100), z.string().max(500))
    .refine((claims) => Object.keys(claims).length <= 10, 'names ten claims at most')
    .optional(),
}

/** A workflow in one line, as assistants write it: `github:owner/name`, or `github:owner/name@branch`. */
export function workflowInWords({ provider, repository, branch }: WorkflowLine): string {
  return `${provider}:${repository}${branch === null ? '' : `@${branch}`}`
}

type WorkflowLine = Pick<TrustedWorkflow, 'provider' | 'repository' | 'branch'>

/** What such a line means; undefined when it is none. */
export function workflowOfWords(text: string): WorkflowLine | undefined {
  const [, forge, repository = '', branch] = /^(\w{1,20}):([^@\s]{1,200})(?:@(\S{1,200}))?$/.exec(text.trim()) ?? []
  const provider = PROVIDERS.find((known) => known === forge)
  return provider === undefined ? undefined : { provider, repository, branch: branch ?? null }
}

/** The exact issuer of a registration; undefined when this installation does not trust it. */
export function issuerOf(
  { provider, issuer }: { provider: Provider; issuer?: string | undefined },
  trustedIssuers: readonly string[],
): string | undefined {
  const wanted = issuer ?? BUILT_IN_ISSUERS[provider]
  if (wanted === undefined) return undefined
  return wanted === BUILT_IN_ISSUERS[provider] || trustedIssuers.includes(wanted) ? wanted : undefined
}
