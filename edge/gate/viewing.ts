/**
 * A request to a drop that only its viewers see, once its state is known to be open:
 *
 *   in by cookie ─▶ shown                               at a door: /.dropway/visit, enter, guest ─▶ control ─▶ cookie
 *   with a token ─▶ asked once, then shown              anyone else ─▶ 401, and a page that asks for an address
 */
import { LRUCache } from 'lru-cache'
import type { Admission } from '../../shared/contracts/admission.ts'
import type { VisitAnswer, VisitQuestion } from '../../shared/contracts/visit-desk.ts'
import { isEncoded } from '../../shared/http/content-coding.ts'
import { parseForm } from '../../shared/http/form.ts'
import { limitKeyOfIp } from '../../shared/http/ip.ts'
import { MINUTE_MS, type Clock } from '../../shared/running/clock.ts'
import type { Arrival, Drop, Exchange, ServedSite } from '../context.ts'
import { doorOf, type Admissions, type Door } from './admissions.ts'
import { createAttempts, type AttemptLimit } from './attempts.ts'
import { nextAfterUnlocking } from './unlock.ts'

type Done = void | Promise<void>
/** Shows the drop to whoever may see it. */
type Show = (exchange: Exchange, drop: Drop) => Done

export interface Viewing {
  /** Answers, or lets `show` do so for who is in. */
  visit(exchange: Exchange, drop: Drop, show: Show): Done
  /** The drop as who sent this sees it; undefined where they are not in, as far as is known without control. */
  seen(arrival: Arrival, drop: Drop): Drop | undefined
}

type Refusal = Extract<VisitAnswer, { kind: 'refused' }>

/** How those are answered who are not in yet. */
export interface DoorAnswers {
  /** The page that asks for an address; with a refusal: again, and why. */
  notIn(exchange: Exchange, drop: Drop, about: { next: string | null; refusal?: Refusal | undefined }): void
  /** The page that asks for the code; after a request to be let in, that the owner was asked. */
  codeAsked(exchange: Exchange, drop: Drop, about: { next: string | null; email: string; answer: VisitAnswer }): void
  /** The page with one button behind a link that lets someone in. */
  door(exchange: Exchange, drop: Drop, door: Exclude<Door, { kind: 'visit' }>): void
  /** Elsewhere in the drop. */
  goTo(exchange: Exchange, drop: Drop, path: string): void
  /** A token does not open the drop; undefined: it was let in, and this edge has not heard why. */
  programRefused(exchange: Exchange, drop: Drop, refusal: Refusal | undefined): void
  unlocked(exchange: Exchange, outcome: { setCookie: string; location: string }): void
  error(exchange: Exchange, status: number, about: { drop: Drop }): void
  unavailable(exchange: Exchange, failure: { status: 502; error: Error }): void
}

export interface ViewingDependencies {
  readonly admissions: Admissions
  /** The line to control; rejects when no control answers in time. */
  readonly line: { ask(question: VisitQuestion, ip: string): Promise<VisitAnswer> }
  readonly answers: DoorAnswers
  /** Whether a link is only looked at: by what calls itself a machine, or ahead of a person. */
  isLookedAt(exchange: Exchange): boolean
  readonly clock: Clock
}

/** What one network may ask control through one worker; control counts for itself too. */
const PER_NETWORK: AttemptLimit = { attempts: 300, windowMs: MINUTE_MS, maxKeys: 50_000 }
/** Tokens that were let in: about 700 bytes each. */
const MAX_MACHINES = 5000
const MAX_TOKEN_CHARS = 400
/** Browsers of one drop, of which each has a header of its own; forgotten ones are worked out again. */
const MAX_SEEN_OF_DROP = 500
const MAX_FORM_BYTES = 8192

export function createViewing({ admissions, line, answers, isLookedAt, clock }: ViewingDependencies): Viewing {
  const perNetwork = createAttempts(PER_NETWORK, clock)
  const machines = createMachines()
  const forPrograms = new WeakMap<ServedSite, Drop>()
  const seenByCookie = createSeen(admissions, clock)

  async function ask(question: VisitQuestion, { ip }: Exchange): Promise<VisitAnswer> {
    const { used, endsInMs } = perNetwork.take(limitKeyOfIp(ip))
    if (used > 1) return { kind: 'refused', reason: 'limited', retry_after: Math.ceil(endsInMs / 1000) }
    try {
      return await line.ask(question, ip)
    } catch (error) {
      throw new ControlAway('control did not answer', { cause: error })
    }
  }

  /** A drop as programs get it: scripts of any page may read it, since a token and no cookie opens it. */
  function forProgram(drop: Drop): Drop {
    let made = forPrograms.get(drop.route)
    if (made === undefined)
      forPrograms.set(drop.route, (made = { ...drop, route: { ...drop.route }, isForProgram: true }))
    return made
  }

  function knownAdmission(route: ServedSite, token: ProgramToken): Admission | undefined {
    const sealed = machines.sealed(machineKey(route, token))
    return sealed === undefined ? undefined : admissions.ofSealed(route, sealed)
  }

  async function visitAsProgram(exchange: Exchange, drop: Drop, token: ProgramToken, show: Show): Promise<void> {
    const { route } = drop
    const { site_id } = route
    let admission = knownAdmission(route, token)
    if (admission === undefined) {
      const question: VisitQuestion = { kind: 'machine', site_id, host: exchange.host, ...token }
      const answer = await machines.once(machineKey(route, token), () => ask(question, exchange))
      if (answer.kind === 'refused') return answers.programRefused(exchange, drop, answer)
      if (answer.kind === 'admitted') admission = admissions.ofSealed(route, answer.admission)
    }
    if (admission === undefined) return answers.programRefused(exchange, drop, undefined)
    return show(exchange, seenBy(forProgram(drop), admission))
  }

  function comeIn(exchange: Exchange, drop: Drop, answer: VisitAnswer, next: string | null): void {
    if (answer.kind === 'admitted')
      return answers.unlocked(exchange, {
        setCookie: admissions.cookie(answer.admission, answer.ends_at),
        location: nextAfterUnlocking(next),
      })
    answers.notIn(exchange, drop, { next, refusal: answer.kind === 'refused' ? answer : undefined })
  }

  async function submit(exchange: Exchange, drop: Drop, door: Door): Promise<void> {
    if (isEncoded(exchange.header('content-encoding'))) return answers.error(exchange, 415, { drop })
    const body = await exchange.full?.readForm(MAX_FORM_BYTES)
    if (body === undefined) return answers.error(exchange, 413, { drop })
    const form = parseForm(body.toString())
    if (typeof form === 'string') return answers.error(exchange, 400, { drop })
    const next = form.get('next')
    const about = { site_id: drop.route.site_id, host: exchange.host }
    if (door.kind !== 'visit')
      return comeIn(exchange, drop, await ask({ kind: door.kind, ...about, token: door.token }, exchange), next)
    const email = (form.get('email') ?? '').slice(0, 300)
    switch (form.get('do')) {
      case 'try': {
        const code = (form.get('code') ?? '').slice(0, 40)
        const answer = await ask({ kind: 'try', ...about, email, code }, exchange)
        if (answer.kind === 'admitted') return comeIn(exchange, drop, answer, next)
        return answers.codeAsked(exchange, drop, { next, email, answer })
      }
      case 'ask':
        return answers.codeAsked(exchange, drop, {
          next,
          email,
          answer: await ask({ kind: 'ask', ...about, email }, exchange),
        })
      default: {
        const path = nextAfterUnlocking(next)
        const answer = await ask({ kind: 'code', ...about, email, next: path }, exchange)
        if (answer.kind === 'refused') return answers.notIn(exchange, drop, { next, refusal: answer })
        return answers.codeAsked(exchange, drop, { next, email, answer })
      }
    }
  }

  /** A guest's click is enough; whatever only looks at links sees a button. */
  async function openDoor(exchange: Exchange, drop: Drop, door: Door): Promise<void> {
    if (door.kind === 'visit') return answers.notIn(exchange, drop, { next: door.next ?? '/' })
    const needsButton = door.kind === 'enter' && !door.isDirect
    if (needsButton || exchange.method === 'HEAD' || isLookedAt(exchange)) return answers.door(exchange, drop, door)
    const about = { site_id: drop.route.site_id, host: exchange.host }
    comeIn(exchange, drop, await ask({ kind: door.kind, ...about, token: door.token }, exchange), door.next)
  }

  return {
    visit(exchange, drop, show) {
      const { target, method } = exchange
      const seen = seenByCookie(drop, exchange.header('cookie'))
      const door = doorOf(target)
      if (method === 'POST' && door !== undefined)
        return withControl(exchange, answers, () => submit(exchange, drop, door))
      // A form may ask for the password that the drop had before: it opens nothing here.
      const isForContent = method !== 'POST' && door === undefined
      if (seen !== undefined) return isForContent ? show(exchange, seen) : answers.goTo(exchange, drop, '/')
      if (door !== undefined) return withControl(exchange, answers, () => openDoor(exchange, drop, door))
      const token = isForContent ? programToken(exchange) : undefined
      if (token === undefined) return answers.notIn(exchange, drop, { next: target })
      return withControl(exchange, answers, () => visitAsProgram(exchange, drop, token, show))
    },
    seen(arrival, drop) {
      const byCookie = seenByCookie(drop, arrival.header('cookie'))
      if (byCookie !== undefined) return byCookie
      const token = programToken(arrival)
      const admission = token && knownAdmission(drop.route, token)
      return admission && seenBy(forProgram(drop), admission)
    },
  }
}

class ControlAway extends Error {}

/** Control is away: a page says so, and whoever is in notices nothing. */
async function withControl(exchange: Exchange, answers: DoorAnswers, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof ControlAway)) throw error
    answers.unavailable(exchange, { status: 502, error })
  }
}

function seenBy(drop: Drop, { subject }: Admission): Drop {
  return { ...drop, viewer: subject }
}

/** What was decided about a cookie header, while neither the drop's record nor the admission's end changes it. */
interface Seen {
  readonly drop: Drop
  readonly endsAt: number
}

/** Browsers send the same header again and again: what it lets them see is worked out once for each record. */
function createSeen(
  admissions: Admissions,
  clock: Clock,
): (drop: Drop, cookieHeader: string | undefined) => Drop | undefined {
  const ofDrops = new WeakMap<Drop, Map<string, Seen>>()
  return (drop, header) => {
    if (header === undefined) return undefined
    let ofDrop = ofDrops.get(drop)
    if (ofDrop === undefined) ofDrops.set(drop, (ofDrop = new Map()))
    const known = ofDrop.get(header)
    if (known !== undefined && known.endsAt > clock.now()) return known.drop
    const admission = admissions.ofCookies(drop.route, header)
    if (admission === undefined) return undefined
    if (ofDrop.size >= MAX_SEEN_OF_DROP) ofDrop.clear()
    const seen = { drop: seenBy(drop, admission), endsAt: admission.endsAt }
    ofDrop.set(header, seen)
    return seen.drop
  }
}

interface ProgramToken {
  readonly bearer?: string
  readonly guest?: string
}

function machineKey({ site_id }: ServedSite, { bearer = '', guest = '' }: ProgramToken): string {
  return `${site_id} ${bearer} ${guest}`
}

/** What a program shows instead of a cookie; undefined for people. */
function programToken(arrival: Arrival): ProgramToken | undefined {
  const bearer = /^bearer +(\S+)$/i.exec(arrival.header('authorization')?.trim() ?? '')?.[1]
  const guest = arrival.header('dropway-guest')?.trim()
  const token = {
    ...(bearer !== undefined && bearer.length <= MAX_TOKEN_CHARS ? { bearer } : {}),
    ...(guest !== undefined && guest !== '' && guest.length <= MAX_TOKEN_CHARS ? { guest } : {}),
  }
  return Object.keys(token).length > 0 ? token : undefined
}

interface Machines {
  /** What control sealed for this token last. */
  sealed(key: string): string | undefined
  /** One question for each token at a time; an admission is kept for the next request. */
  once(key: string, ask: () => Promise<VisitAnswer>): Promise<VisitAnswer>
}

function createMachines(): Machines {
  const known = new LRUCache<string, string>({ max: MAX_MACHINES })
  const underWay = new Map<string, Promise<VisitAnswer>>()
  return {
    sealed: (key) => known.get(key),
    once(key, ask) {
      const asked = underWay.get(key)
      if (asked !== undefined) return asked
      known.delete(key)
      const asking = ask()
        .then((answer) => {
          if (answer.kind === 'admitted') known.set(key, answer.admission)
          return answer
        })
        .finally(() => underWay.delete(key))
      underWay.set(key, asking)
      return asking
    },
  }
}
