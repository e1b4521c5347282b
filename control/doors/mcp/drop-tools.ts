/** Tools that look at drops and change what is around their content: settings, versions, domains, the end. */
import { inputRequired, inputResponse } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { clockNotices } from '../../../shared/values/clock-notice.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { MAX_NAME_CHARS, MAX_PASSWORD_CHARS } from '../../../shared/contracts/limits.ts'
import type { Manifest } from '../../../shared/contracts/manifest.ts'
import type { ApiDomain, ApiSingleDomain } from '../../drops/domains/schemas.ts'
import type { ApiPreview, ApiSite, SitePatch } from '../../drops/sites/schemas.ts'
import { aiUses, previewAccesses } from '../../drops/sites/rules.ts'
import { ACCESS_MODES, MAX_NAMED_AT_ONCE, viewerOfText } from '../../drops/viewers/access.ts'
import { nameViewer } from '../../drops/viewers/schemas.ts'
import { decodeText } from '../../drops/publishing/files/text-encoding.ts'
import { workflowInWords, workflowOfWords } from '../../drops/publishers/rules.ts'
import { uploadedFiles } from '../../drops/sites/versions/uploaded-files.ts'
import { defineTool, type Answer, type Call, type Tool } from './tool.ts'

/** Pages of an answer: what a model reads at once. */
const DROPS_PER_PAGE = 25
const FILES_PER_PAGE = 100
const CHARS_PER_PAGE = 20_000
/** Files are decoded whole to be shown in parts; larger ones are fetched from their address. */
const MAX_READ_BYTES = 2_000_000

const CONFIRM = 'confirm'

/** Where the tools before it have said what names a drop. */
const dropId = z.string()
const cursor = z.string().optional().describe('next of the page before')

const list = defineTool({
  name: 'service_list',
  title: 'List',
  description: 'List your own drops.',
  needs: 'read',
  hints: 'reads',
  input: { cursor },
  run: async ({ cursor: from }, call) => pageOfDrops(await call.services.sites.list(call.actor), from, call),
})

const search = defineTool({
  name: 'service_search',
  title: 'Search',
  description: 'Find drops by words of their name, title or text.',
  needs: 'read',
  hints: 'reads',
  input: { query: z.string() },
  run: async ({ query }, call) => pageOfDrops(await call.services.search.find(call.actor, query), undefined, call),
})

function pageOfDrops(all: readonly ApiSite[], from: string | undefined, { services }: Call): Answer {
  const page = pageOf(all, from, DROPS_PER_PAGE)
  return { facts: { drops: page.items.map(dropFacts), ...page.rest, ...aboutClocks(page.items, services) } }
}

const read = defineTool({
  name: 'service_read',
  title: 'Read',
  description:
    'Settings, report and files of a drop; with path that file as uploaded; with versions its history and previews.',
  needs: 'read',
  hints: 'reads',
  input: { id: dropId, path: z.string().optional(), versions: z.boolean().optional(), cursor: z.string().optional() },
  async run({ id: name, path, versions: isHistory = false, cursor: from }, { actor, services }) {
    if (isHistory) return { facts: await historyOf(actor, name, services) }
    const drop = await services.sites.get(actor, await services.sites.findId(actor, name))
    const live = (await services.versions.list(actor, drop.id)).find((version) => version.live)
    const manifest = await services.versions.liveManifest(drop.id, drop.live_version_id)
    const version = live?.version_number ?? 0
    if (path !== undefined) return readFile({ drop, manifest, version, path, from }, services)
    const all = [...uploadedFiles(manifest)].map(([file, { size }]) => `${file} ${size}`)
    const page = pageOf(all, from, FILES_PER_PAGE)
    return {
      facts: {
        ...dropFacts(drop),
        ...aboutClocks([drop], services),
        version,
        spa_fallback: drop.spa_fallback,
        gallery: drop.gallery,
        warnings: live?.report.warnings.map(({ path: at, message, count }) => {
          const others = at === undefined || count === 1 ? '' : ` (${count} files)`
          return at === undefined ? message : `${at}: ${message}${others}`
        }),
        files: page.items,
        ...page.rest,
      },
    }
  },
})

/** The name from before service_read told of versions. */
const versionsTool = defineTool({
  name: 'service_versions',
  title: 'List versions',
  description: 'List the retained versions of a drop, newest first, and its named previews.',
  needs: 'read',
  hints: 'reads',
  isListed: false,
  input: { id: dropId },
  run: async ({ id: name }, { actor, services }) => ({ facts: await historyOf(actor, name, services) }),
})

async function historyOf(
  actor: Call['actor'],
  name: string,
  { sites, versions, previews: named }: Pick<Call['services'], 'sites' | 'versions' | 'previews'>,
): Promise<Record<string, unknown>> {
  const siteId = await sites.findId(actor, name)
  const entries = await versions.list(actor, siteId)
  const previews = await named.list(actor, siteId)
  return {
    ...(previews.length === 0 ? {} : { previews: previews.map(previewFacts) }),
    versions: entries.map((entry) => ({
      version: entry.version_number,
      at: entry.created_at,
      ...(entry.created_by === null ? {} : { by: entry.created_by }),
      files: entry.file_count,
      bytes: entry.byte_size,
      ...(entry.message === '' ? {} : { message: entry.message }),
      ...(entry.live ? { live: true } : {}),
    })),
  }
}

function previewFacts({ name, url, version_number, published_at, expires_at }: ApiPreview) {
  return { name, url, version: version_number, published_at, expires_at }
}

const promote = defineTool({
  name: 'service_promote',
  title: 'Promote',
  description: 'Make a version or named preview live; remove: end the preview.',
  needs: 'publish',
  hints: 'publishes',
  input: {
    id: dropId,
    version: z.int().or(z.string()).meta({ type: 'integer', anyOf: undefined }).optional(),
    preview: z.string().optional(),
    remove: z.boolean().optional(),
  },
  async run({ id: name, version, preview, remove: isOver = false }, { actor, services }) {
    if ((version === undefined) === (preview === undefined))
      throw errors.invalidRequest('Send either version, a number, or preview, the name of one.')
    const siteId = await services.sites.findId(actor, name)
    if (preview !== undefined && isOver) {
      await services.previews.remove(actor, siteId, preview)
      return { facts: { removed: preview } }
    }
    if (isOver) throw errors.invalidRequest('remove: only a preview can be removed; name it as preview.')
    const { value } =
      preview === undefined
        ? await services.versions.promote(actor, siteId, await versionIdOf(services, actor, siteId, version))
        : await services.previews.promote(actor, siteId, preview)
    return { facts: { url: value.url, version: value.version_number, live: true } }
  },
})

/** Models write a number as text, too. */
function versionIdOf(
  services: Call['services'],
  actor: Call['actor'],
  siteId: string,
  version: string | number | undefined,
): Promise<string> {
  const wanted = typeof version === 'string' && /^\d+$/.test(version) ? Number(version) : (version ?? '')
  return services.versions.requireId(actor, siteId, wanted)
}

/** Who may see a drop: alike where one is published and where its settings change. */
export const sharingFields = {
  access_mode: z.enum(ACCESS_MODES).optional(),
  viewers: z.array(z.string()).max(MAX_NAMED_AT_ONCE).optional(),
  invite: z.boolean().optional(),
  guest_link: z.boolean().optional(),
  expires_in: z.string().optional(),
}

const settings = defineTool({
  name: 'service_settings',
  title: 'Settings',
  description: 'Change settings of a drop.',
  needs: 'manage',
  hints: 'publishes',
  input: {
    id: dropId,
    slug: z.string().optional(),
    title: z.string().max(MAX_NAME_CHARS).optional(),
    password: z.string().max(MAX_PASSWORD_CHARS).optional().describe('"": public again'),
    ...sharingFields,
    confirm: z.boolean().optional().describe('Public: the person agreed'),
    spa_fallback: z.boolean().optional().describe('Unknown paths show index.html'),
    gallery: z.boolean().optional(),
    stays_live: z.boolean().optional(),
    previews: z.enum(previewAccesses).optional(),
    keep_old_files_days: z.int().min(0).max(365).nullable().optional(),
    llms_txt: z.boolean().optional(),
    ai: z.enum(aiUses).optional(),
    card: z.boolean().optional(),
    publishers: z.array(z.string()).optional().describe('Trusted CI: github:owner/repo@branch'),
  },
  async run(args, call) {
    const { id: name, title, password, stays_live: staysLive, publishers, confirm, ...others } = args
    const { viewers, invite, guest_link, ...rest } = others
    const { actor, services } = call
    const patch: SitePatch = {
      ...rest,
      ...(title === undefined ? {} : { name: title }),
      ...(password === undefined ? {} : { password: password === '' ? null : password }),
    }
    const isChanged = Object.keys(patch).length > 0
    const sharing = { viewers, invite, guest_link }
    const isShared = Object.values(sharing).some((value) => value !== undefined)
    const isSaid = isChanged || isShared || staysLive !== undefined || publishers !== undefined
    if (!isSaid) throw errors.invalidRequest('Send at least one setting.')
    const siteId = await services.sites.findId(actor, name)
    const drop = await services.sites.get(actor, siteId)
    const question = opens(patch, drop) ? askBeforeOpening(drop, call, confirm) : undefined
    if (question) return question
    if (staysLive !== undefined) await choose(siteId, staysLive, actor, services.sites)
    if (isChanged) await services.sites.patch(actor, siteId, patch)
    const shared = isShared ? await share(call, siteId, sharing) : {}
    const trusted = publishers === undefined ? {} : await trustWorkflows(call, siteId, publishers)
    const changed = await services.sites.get(actor, siteId)
    const { spa_fallback, gallery, stays_live } = changed
    return {
      facts: {
        ...dropFacts(changed),
        spa_fallback,
        gallery,
        ...(stays_live ? { stays_live } : {}),
        ...shared,
        ...trusted,
      },
    }
  },
})

interface SharingArguments {
  readonly viewers: string[] | undefined
  readonly invite: boolean | undefined
  readonly guest_link: boolean | undefined
}

/** Changes the lists of a drop, and tells who is on them and who has looked. */
async function share({ actor, services }: Call, siteId: string, wanted: SharingArguments): Promise<object> {
  const { viewers = [], invite = true, guest_link } = wanted
  const { viewerSharing } = services
  if (viewers.length > 0) await viewerSharing.add(actor, siteId, { named: viewers.map(viewerOfText), invite })
  const link = guest_link ? await viewerSharing.addLink(actor, siteId, {}) : undefined
  const listed = await viewerSharing.viewers(actor, siteId)
  return {
    viewers: listed.map(
      (viewer) => `${nameViewer(viewer)}${viewer.last_opened_at === null ? ' (not opened yet)' : ''}`,
    ),
    ...(link?.url === undefined ? {} : { guest_link: link.url }),
  }
}

/** The list as a whole: what is new on it is trusted, what is no longer on it is not. */
async function trustWorkflows({ actor, services }: Call, siteId: string, lines: readonly string[]): Promise<object> {
  const { publishers } = services
  const wanted = lines.map((line) => {
    const workflow = workflowOfWords(line)
    if (workflow) return { ...workflow, words: workflowInWords(workflow) }
    throw errors.invalidRequest(
      `publishers: write github:owner/repo or github:owner/repo@branch, not "${line.slice(0, 80)}".`,
    )
  })
  const present = await publishers.list(actor, siteId)
  const known = new Set(present.map(workflowInWords))
  for (const { words, provider, repository, branch } of wanted) {
    if (known.has(words)) continue
    await publishers.add(actor, siteId, { provider, repository, branch: branch ?? undefined })
    known.add(words)
  }
  const kept = new Set(wanted.map(({ words }) => words))
  for (const each of present) if (!kept.has(workflowInWords(each))) await publishers.remove(actor, siteId, each.id)
  return { publishers: (await publishers.list(actor, siteId)).map(workflowInWords) }
}

/** opens tells whether a change lets everyone see what only some could: as its mode, or because its only lock goes. */
function opens({ access_mode: wanted, password }: SitePatch, { access_mode: present }: ApiSite): boolean {
  if (wanted === 'public') return present !== 'public'
  return wanted === undefined && password === null && present === 'password'
}

/** Undefined when the person said yes, here or to the assistant. */
function askBeforeOpening(drop: ApiSite, { request, canAsk }: Call, confirm: boolean | undefined): Answer | undefined {
  if (confirm === true) return undefined
  const refusal = errors.conflict(
    'not_confirmed',
    `"${drop.slug}" stays as it is: ask the person whether everyone may see it, then send confirm: true.`,
  )
  if (!canAsk) throw refusal
  const answer = inputResponse(request.inputResponses, CONFIRM)
  if (answer.kind === 'elicit') {
    if (answer.action === 'accept' && answer.content?.['open'] === true) return undefined
    throw refusal
  }
  return inputRequired({
    inputRequests: {
      [CONFIRM]: inputRequired.elicit({
        message: `Let everyone see "${drop.slug}" (${drop.url})?`,
        requestedSchema: {
          type: 'object',
          properties: { open: { type: 'boolean', title: 'Everyone may see it' } },
          required: ['open'],
        },
      }),
    },
  })
}

/** The owner's choice is a list; a setting of one drop adds to it or takes away. */
async function choose(siteId: string, staysLive: boolean, actor: Call['actor'], sites: ChosenSites): Promise<void> {
  const others = (await sites.list(actor)).filter((site) => site.stays_live && site.id !== siteId).map(({ id }) => id)
  await sites.choose(actor, staysLive ? [...others, siteId] : others)
}

type ChosenSites = Pick<Call['services']['sites'], 'list' | 'choose'>

const domain = defineTool({
  name: 'service_domain',
  title: 'Domains',
  description: 'Serve a drop from your own domain: DNS records to set, what is still wrong.',
  needs: 'manage',
  hints: 'publishes',
  input: {
    id: dropId,
    action: z.enum(['list', 'add', 'check', 'main', 'remove']),
    domain: z.string().optional(),
  },
  async run({ id: name, action, domain: wanted }, { actor, services }) {
    const siteId = await services.sites.findId(actor, name)
    if (action === 'list') return { facts: { domains: (await services.domains.list(actor, siteId)).map(domainFacts) } }
    if (wanted === undefined) throw errors.invalidRequest('domain: send the name, such as www.example.org.')
    if (action === 'remove') {
      await services.domains.remove(actor, siteId, wanted)
      return { facts: { removed: wanted } }
    }
    const { domains } = services
    const act = {
      add: () => domains.add(actor, siteId, { domain: wanted }),
      check: () => domains.check(actor, siteId, wanted),
      main: () => domains.makeMain(actor, siteId, wanted),
    }
    return { facts: domainFacts(await act[action]()) }
  },
})

/** Asked through the client where it can ask; elsewhere the hint makes hosts ask, and the description the model. */
const remove = defineTool({
  name: 'service_delete',
  title: 'Delete',
  description: 'Delete a drop for good. Ask the person first.',
  needs: 'manage',
  hints: 'publishes',
  input: { id: dropId },
  async run({ id: name }, call) {
    const { actor, services } = call
    const drop = await services.sites.get(actor, await services.sites.findId(actor, name))
    const question = call.canAsk ? askBeforeDeleting(drop, call) : undefined
    if (question) return question
    await services.sites.delete(actor, drop.id)
    return { facts: { deleted: true, id: drop.id, slug: drop.slug } }
  },
})

/** Undefined when the person said yes. */
function askBeforeDeleting(drop: ApiSite, { request }: Call): Answer | undefined {
  const answer = inputResponse(request.inputResponses, CONFIRM)
  if (answer.kind === 'elicit') {
    if (answer.action === 'accept' && answer.content?.['delete'] === true) return undefined
    throw errors.conflict('not_confirmed', `"${drop.slug}" was not deleted: the person did not agree.`)
  }
  return inputRequired({
    inputRequests: {
      [CONFIRM]: inputRequired.elicit({
        message: `Delete "${drop.slug}" (${drop.url}) for good, with all its versions? This cannot be undone.`,
        requestedSchema: {
          type: 'object',
          properties: { delete: { type: 'boolean', title: 'Delete it for good' } },
          required: ['delete'],
        },
      }),
    },
  })
}

export const dropTools: readonly Tool[] = [list, search, read, versionsTool, promote, settings, domain, remove]

/** What an assistant wants to know of a drop; what is as usual is left out. */
export function dropFacts(drop: ApiSite): Record<string, unknown> {
  return {
    slug: drop.slug,
    id: drop.id,
    url: drop.url,
    ...(drop.name === '' && drop.title === '' ? {} : { title: drop.name || drop.title }),
    ...(drop.state === 'live' ? {} : { state: drop.state }),
    ...(drop.has_password ? { password: true } : {}),
    ...(drop.access_mode === 'viewers' ? { access_mode: 'viewers' } : {}),
    ...(drop.access_until === null ? {} : { access_until: drop.access_until }),
    views_30d: drop.views_30d,
  }
}

/** Sentences for the person: clocks that run out soon. */
export function aboutClocks(
  drops: readonly ApiSite[],
  { baseUrl, clock }: Pick<Call['services'], 'baseUrl' | 'clock'>,
): { notices?: string[] } {
  const notices = clockNotices(drops, baseUrl, clock.now())
  return notices.length > 0 ? { notices } : {}
}

/** The lines are those of API, client and dashboard; each half of a pair has its own. */
function domainFacts(view: ApiSingleDomain & { pair?: ApiDomain['pair'] }): Record<string, unknown> {
  return {
    domain: view.domain,
    ...(view.unicode === null ? {} : { unicode: view.unicode }),
    state: view.state,
    says: view.detail,
    records: view.records.map(({ action, host, zone, type, value, found }) => ({
      action,
      host,
      zone,
      type,
      value,
      found,
    })),
    ...(view.warnings.length > 0 ? { warnings: view.warnings } : {}),
    ...(view.pair ? { redirects_from: domainFacts(view.pair) } : {}),
  }
}

function pageOf<Item>(all: readonly Item[], from: string | undefined, size: number) {
  const start = Number(from ?? 0)
  if (!Number.isInteger(start) || start < 0) throw errors.invalidRequest('cursor: send the next of the page before.')
  const end = start + size
  return {
    items: all.slice(start, end),
    rest: all.length > end ? { next: String(end), total: all.length } : {},
  }
}

interface FileRead {
  readonly drop: ApiSite
  readonly manifest: Manifest | undefined
  readonly version: number
  readonly path: string
  readonly from: string | undefined
}

async function readFile(
  { drop, manifest, version, path, from }: FileRead,
  { publishing }: Pick<Call['services'], 'publishing'>,
): Promise<Answer> {
  const files = uploadedFiles(manifest)
  const found = files.get(path) ?? manifest?.files.find(([name]) => name === path)?.[1]
  if (!found) throw errors.noSuchFile(path, [...files.keys()])
  const elsewhere = `Fetch it from ${drop.url}/${path} instead.`
  if (found.size > MAX_READ_BYTES)
    throw errors.invalidRequest(`"${path}" is larger than ${MAX_READ_BYTES / 1_000_000} MB. ${elsewhere}`)
  const bytes = await publishing.readBlob(found.hash)
  if (bytes.subarray(0, 8000).includes(0)) throw errors.invalidRequest(`"${path}" is not a text. ${elsewhere}`)
  const text = decodeText(bytes)
  const start = Number(from ?? 0)
  if (!Number.isInteger(start) || start < 0) throw errors.invalidRequest('cursor: send the next of the page before.')
  const end = start + CHARS_PER_PAGE
  return {
    text: text.slice(start, end),
    facts: { path, version, ...(text.length > end ? { next: String(end), chars: text.length } : {}) },
  }
}
