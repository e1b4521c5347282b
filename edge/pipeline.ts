/**
 * The life of a request at the edge, in order. accept has made an Exchange of it; each step decides one thing and this
 * file says what follows. README.md draws it with every exit.
 *
 *   accept → classify → gate → locate → rewrite → send
 *
 * A hot request runs through without a promise or a function made for it: only what really is not there yet is awaited.
 */
import type { Clock } from '../shared/running/clock.ts'
import { isEncoded } from '../shared/http/content-coding.ts'
import { parseForm } from '../shared/http/form.ts'
import { newId } from '../shared/contracts/ids.ts'
import type { Log } from '../shared/running/log.ts'
import { REPORT_PATH } from '../shared/http/report-address.ts'
import type { Answers } from './processes/answers.ts'
import type { Classify } from './gate/classify.ts'
import type { Arrival, Drop, Exchange, Intent, SiteIndex } from './context.ts'
import { checkState } from './gate/state.ts'
import type { PreviewGate } from './gate/members.ts'
import { doorOf } from './gate/admissions.ts'
import type { Framing } from './gate/review.ts'
import { UNLOCK_PATH, type Unlock } from './gate/unlock.ts'
import { ICON_PATH } from './processes/icon.ts'
import { locate } from './locate/locate.ts'
import { isGenerated } from './processes/machines/rules.ts'
import type { Machines } from './processes/machines/machines.ts'
import type { Asset, Representations } from './processes/representations.ts'
import type { Viewing } from './gate/viewing.ts'
import type { SeenAgain, Watching } from './store/live/watching.ts'
import { asPartOf, pathOf } from './processes/status/stray-errors.ts'
import { sendFile, type Sent } from './send/file.ts'
import type { Proxy } from './send/proxy.ts'
import { describeVariant, type Representation } from './send/representation.ts'
import { isView, type Views } from './send/views.ts'
import type { Visits } from './send/visits.ts'
import type { Sites } from './store/sites.ts'

export interface PipelineDependencies {
  readonly classify: Classify
  readonly unlock: Unlock
  readonly members: PreviewGate
  readonly sites: Sites
  readonly representations: Representations
  readonly machines: Pick<Machines, 'generated'>
  readonly answers: Answers
  readonly proxy: Proxy
  readonly viewing: Viewing
  readonly framing: Framing
  readonly watching: Watching
  readonly views: Views
  readonly visits: Visits
  readonly clock: Clock
  readonly log: Log
}

type Done = void | Promise<void>

/** The unlock form holds a password and a path. */
const MAX_UNLOCK_BYTES = 8192
const MAX_REPORTED = 1000

export function createPipeline(dependencies: PipelineDependencies): (exchange: Exchange) => void {
  const { classify, unlock, viewing, members, sites, representations, machines, answers, proxy, clock, log } =
    dependencies
  const { framing, watching } = dependencies
  const again = (arrival: Arrival): SeenAgain => seenAgain(dependencies, arrival)

  function walk(exchange: Exchange): Done {
    const destination = classify(exchange)
    switch (destination.kind) {
      case 'site':
        return visit(exchange, destination.drop)
      case 'service':
        return forward(exchange)
      case 'moved':
        return answers.moved(exchange, destination.to)
      case 'unknown':
        return isReading(exchange) ? answers.closed(exchange, 'unknown') : answers.error(exchange, 405)
      case 'unready':
        return answers.error(exchange, 503)
      case 'refused':
        return answers.error(exchange, destination.status)
      default:
        return destination satisfies never
    }
  }

  function forward(exchange: Exchange): void {
    if (exchange.target.startsWith('/review/') && watching.atService(exchange)) return
    const { full } = exchange
    if (full === undefined) throw new Error('control does not answer a plain request')
    asPartOf(full, () => proxy.forward(full, (failure) => answers.unavailable(full, failure)))
  }

  function visit(exchange: Exchange, drop: Drop): Done {
    const { route } = drop
    const isAttempt = exchange.method === 'POST' && isGatePath(exchange.target)
    if (exchange.method === 'OPTIONS') return answers.methods(exchange, drop)
    if (!isReading(exchange) && !isAttempt) return answers.error(exchange, 405, { drop })

    const verdict = checkState(route, clock.now())
    if (verdict.kind === 'closed') return answers.closed(exchange, verdict.page)
    // Who has the pass of a reviewer has come through the gates.
    const framed = framedAt(framing, exchange, drop)
    if (framed) return open(exchange, framed)
    if (route.viewers) return viewing.visit(exchange, drop, open)
    if (doorOf(exchange.target)) return answers.goTo(exchange, drop, '/')
    if (isAttempt) return attemptUnlock(dependencies, exchange, drop)
    const knowsMembers = drop.isForMembers || drop.previewName !== undefined
    return knowsMembers ? admit({ members, answers }, exchange, drop, enter) : enter(exchange, drop)
  }

  function enter(exchange: Exchange, drop: Drop): Done {
    const { route } = drop
    if (drop.isProtected && !unlock.isUnlocked(route, exchange.header('cookie')))
      return answers.locked(exchange, { work: unlock.workFor(route, exchange) })
    return open(exchange, drop)
  }

  /** Whoever asks may see it. */
  function open(exchange: Exchange, asked: Drop): Done {
    if (asked.isPreview && watching.atDrop(exchange, asked, again)) return
    const fetchDest = exchange.header('sec-fetch-dest')
    const drop = fetchDest === 'iframe' ? inFrame(framing, exchange, asked) : asked
    const manifest = drop.route.manifest!
    const index = sites.get(manifest)
    if (index === undefined)
      return sites.load(manifest).then((loaded) => act(exchange, drop, find(exchange, drop, loaded, fetchDest)))
    return act(exchange, drop, find(exchange, drop, index, fetchDest))
  }

  /** What the drop has itself comes first; what stands in for a file that it lacks is made for machines alone. */
  function act(exchange: Exchange, drop: Drop, intent: Intent): Done {
    const made = isGenerated(exchange.target, intent, drop.route.spa_fallback)
      ? machines.generated(drop, exchange)
      : undefined
    if (made === undefined) return follow(exchange, drop, intent)
    return made.then((file) =>
      file === undefined ? follow(exchange, drop, intent) : void sendFile(exchange, 200, file),
    )
  }

  function follow(exchange: Exchange, drop: Drop, intent: Intent): Done {
    switch (intent.kind) {
      case 'asset': {
        // A drop's own page for what is missing is no icon.
        if (intent.status === 404 && exchange.target === ICON_PATH) return answers.icon(exchange, drop)
        const file = representations.of(drop, intent, exchange)
        if (file instanceof Promise) return file.then((made) => show(dependencies, exchange, drop, intent, made))
        return show(dependencies, exchange, drop, intent, file)
      }
      case 'redirect':
        return answers.redirect(exchange, drop, intent.status, intent.location)
      case 'missing':
        if (exchange.target === ICON_PATH) return answers.icon(exchange, drop)
        return exchange.target === REPORT_PATH ? answers.report(exchange) : answers.missing(exchange, drop)
      case 'malformed':
        return answers.error(exchange, 400, { drop })
      default:
        return intent satisfies never
    }
  }

  const report = createFailureReport(log)
  const fail = (exchange: Exchange, error: unknown): void => {
    const id = report(exchange, error)
    if (!exchange.isAnswered) answers.error(exchange, 500, { id })
  }

  return (exchange) => {
    try {
      const walking = walk(exchange)
      if (walking instanceof Promise) walking.catch((error: unknown) => fail(exchange, error))
    } catch (error) {
      fail(exchange, error)
    }
  }
}

async function attemptUnlock(
  { unlock, answers }: Pick<PipelineDependencies, 'unlock' | 'answers'>,
  exchange: Exchange,
  drop: Drop,
): Promise<void> {
  if (isEncoded(exchange.header('content-encoding'))) return answers.error(exchange, 415, { drop })
  const body = await exchange.full?.readForm(MAX_UNLOCK_BYTES)
  if (body === undefined) return answers.error(exchange, 413, { drop })
  const form = parseForm(body.toString())
  if (typeof form === 'string') return answers.error(exchange, 400, { drop })
  const outcome = await unlock.attempt(drop.route, exchange, form)
  if (outcome.kind === 'unlocked') return answers.unlocked(exchange, outcome)
  return answers.locked(exchange, { form, outcome, work: outcome.work })
}

function show(
  dependencies: Pick<PipelineDependencies, 'views' | 'visits' | 'clock'>,
  exchange: Exchange,
  drop: Drop,
  asset: Asset,
  file: Representation,
): Done {
  const shown = drop.frameCookie === undefined ? file : withCookie(file, drop.frameCookie)
  const sent = sendFile(exchange, asset.status, shown)
  if (drop.viewer !== undefined && isPageOf(exchange, asset, file)) dependencies.visits.note(drop.viewer)
  if (!file.isPage || asset.status !== 200 || drop.isPreview)
    return sent instanceof Promise ? sent.then(ignore) : undefined
  return sent instanceof Promise
    ? sent.then((what) => count(dependencies, exchange, drop, asset, what))
    : count(dependencies, exchange, drop, asset, sent)
}

function count(
  { views, clock }: Pick<PipelineDependencies, 'views' | 'clock'>,
  exchange: Exchange,
  drop: Drop,
  { path }: Asset,
  sent: Sent,
): void {
  if (sent === 'other' || !isView(exchange)) return
  const agent = exchange.header('user-agent') ?? ''
  views.count({ siteId: drop.route.site_id, page: path, ip: exchange.ip, agent }, clock.now())
}

/** Lets members of the drop's organisation into a preview that only they may see. */
function admit(
  { members, answers }: Pick<PipelineDependencies, 'members' | 'answers'>,
  exchange: Exchange,
  drop: Drop,
  enter: (exchange: Exchange, drop: Drop) => Done,
): Done {
  const admission = members.admission(drop, exchange)
  // A preview for whoever has its address knows members too: theirs reloads when a newer version is served.
  if (!drop.isForMembers && admission.kind !== 'member' && admission.kind !== 'enter') return enter(exchange, drop)
  switch (admission.kind) {
    case 'member':
      return enter(exchange, { ...drop, isMember: true })
    case 'ask':
      return members.isMembers(drop, admission.bearer, exchange.ip).then((isMember) => {
        if (isMember === undefined) return answers.error(exchange, 503, { drop })
        return isMember ? enter(exchange, drop) : answers.closed(exchange, 'unknown')
      })
    case 'enter':
      return answers.unlocked(exchange, admission)
    case 'sign-in':
      return answers.signIn(exchange, admission.location)
    case 'stranger':
      return answers.closed(exchange, 'unknown')
    default:
      return admission satisfies never
  }
}

/** Sends a member or a viewer who was let in to a preview through the gates of `visit` and `enter` again, in their order. */
function seenAgain(dependencies: PipelineDependencies, arrival: Arrival): SeenAgain {
  const { classify, framing, viewing, members, unlock, clock } = dependencies
  const destination = classify.at(arrival.host)
  if (destination.kind !== 'site') return undefined
  const { drop } = destination
  if (checkState(drop.route, clock.now()).kind === 'closed') return undefined
  const framed = framedAt(framing, arrival, drop)
  if (framed) return framed
  if (drop.route.viewers) return viewing.seen(arrival, drop) ?? 'outside'
  if (members.admission(drop, arrival).kind !== 'member') return 'outside'
  if (drop.isProtected && !unlock.isUnlocked(drop.route, arrival.header('cookie'))) return 'outside'
  return { ...drop, isMember: true }
}

/** The same answer with a cookie, which belongs to this message alone. */
function withCookie({ headers, size, isPage, source }: Representation, cookie: string): Representation {
  return describeVariant([...headers, 'set-cookie', cookie], size, isPage, source)
}

/** What a reviewer sees: by the address of the frame, or what its page loads of a drop that not everyone may see. */
function framedAt(framing: Framing, arrival: Arrival, drop: Drop): Drop | undefined {
  const byAddress = framing.ofTarget(drop, arrival)
  if (byAddress !== undefined) return byAddress
  return drop.isProtected || drop.isForMembers ? framing.ofCookie(drop, arrival) : undefined
}

/** A page that a link inside the review page's frame leads to. */
function inFrame(framing: Framing, exchange: Exchange, drop: Drop): Drop {
  return drop.isFramed ? drop : (framing.ofCookie(drop, exchange) ?? drop)
}

function find(exchange: Exchange, { route }: Drop, index: SiteIndex, fetchDest: string | undefined): Intent {
  return locate(index, { target: exchange.target, spaFallback: route.spa_fallback, fetchDest })
}

function ignore(): void {}

function isReading({ method }: Exchange): boolean {
  return method === 'GET' || method === 'HEAD'
}

function isGatePath(target: string): boolean {
  return target === UNLOCK_PATH || target.startsWith(`${UNLOCK_PATH}?`) || doorOf(target) !== undefined
}

/** A page that a person or a program opened, not a part of one. */
function isPageOf({ method }: Exchange, { status }: Asset, { isPage }: Representation): boolean {
  return method === 'GET' && status === 200 && isPage
}

/**
 * A broken manifest or a missing blob costs one answer. It is logged once; the next visitors see the same id, which the
 * log knows.
 */
function createFailureReport(log: Log): (exchange: Exchange, error: unknown) => string {
  const reported = new Map<string, string>()
  return (exchange, error) => {
    const key = `${exchange.host} ${error instanceof Error ? error.message : String(error)}`
    const known = reported.get(key)
    if (known !== undefined) return known
    const id = newId('err')
    if (reported.size >= MAX_REPORTED) reported.clear()
    reported.set(key, id)
    log.error({ err: error, id, host: exchange.host, path: pathOf(exchange.target) }, 'an answer failed')
    return id
  }
}
