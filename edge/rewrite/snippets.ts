/** What the edge adds to the pages of a drop: badge, analytics, consent banner, the address of its card. Made once per distinct settings. */
import { createHash } from 'node:crypto'
import path from 'node:path'
import { LRUCache } from 'lru-cache'
import type { Analytics } from '../../shared/contracts/analytics.ts'
import { CARD_HEIGHT, CARD_WIDTH, cardTarget } from '../../shared/contracts/route-record.ts'
import { escape } from '../../shared/pages/html.ts'
import { HOUSE_LOOK, type Look } from '../../shared/pages/look.ts'
import { readInlineScripts } from '../../shared/pages/inline-script.ts'
import { addressOf } from '../../shared/settings/settings.ts'
import type { Markup, ServedSite, Snippets } from '../context.ts'
import { badgeCss, badgeFrames, badgeHtml } from './badge.ts'
import { consentCall, consentCss } from './consent-banner.ts'
import type { CspNeeds } from './csp.ts'
import { chooseLanguage } from './language.ts'
import type { Language } from './language.ts'
import { trackersOf } from './trackers.ts'
import type { Tracker } from './trackers.ts'

/** About 5 kB each; what is forgotten is made again in some 50 µs. */
const MAX_CACHED = 2000
const MAX_UNDERSTOOD = 1000
const MAX_UNDERSTOOD_CHARS = 200

export interface SnippetSource {
  /** Undefined when nothing is added to the pages of this drop. */
  for(route: ServedSite, markup: Markup, acceptLanguage: string | undefined): Snippets | undefined
  /** In the frame of the review page: its helper, and nothing that counts or asks visitors. */
  framed(markup: Markup): Snippets
  /** A page of that version of a named preview that a member or a viewer has open: it reloads when another is served. */
  live(markup: Markup, version: number): Snippets
}

interface Settings {
  /** Host that the badge reports; undefined without badge. */
  readonly badgeHost: string | undefined
  readonly trackers: readonly Tracker[]
  readonly hasBanner: boolean
  /** Address of the card, or undefined. */
  readonly card: string | undefined
  /** Equal settings have equal keys. */
  readonly key: string
}

/** What is the same in all of them. */
interface House {
  readonly baseUrl: string
  readonly name: string
  readonly consentStyle: string
  readonly badgeStyle: string
}

export function createSnippets({
  baseUrl,
  publicPort,
  look = HOUSE_LOOK,
}: {
  baseUrl: string
  publicPort?: number | undefined
  look?: Look
}): SnippetSource {
  const house: House = {
    baseUrl,
    name: look.name,
    consentStyle: consentCss(look.palette),
    badgeStyle: badgeCss(look.palette),
  }
  const made = new LRUCache<string, Snippets>({ max: MAX_CACHED })
  /** Browsers send a few thousand different texts; parsing one costs more than the rest of the look-up. */
  const understood = new LRUCache<string, Language>({ max: MAX_UNDERSTOOD })
  /** Routes are replaced, never changed: their settings are read once. */
  const known = new WeakMap<ServedSite, Settings>()

  function settingsOf(route: ServedSite): Settings {
    let settings = known.get(route)
    if (!settings) known.set(route, (settings = readSettings(route, publicPort)))
    return settings
  }

  function languageOf(acceptLanguage = ''): Language {
    if (acceptLanguage.length > MAX_UNDERSTOOD_CHARS) return chooseLanguage(acceptLanguage)
    let language = understood.get(acceptLanguage)
    if (language === undefined) understood.set(acceptLanguage, (language = chooseLanguage(acceptLanguage)))
    return language
  }

  const ofFrame = { html: reviewSnippets('html', baseUrl), xhtml: reviewSnippets('xhtml', baseUrl) }
  function keep(key: string, make: () => Snippets): Snippets {
    let snippets = made.get(key)
    if (!snippets) made.set(key, (snippets = make()))
    return snippets
  }

  return {
    framed: (markup) => ofFrame[markup],
    live: (markup, version) => keep(`${markup} live ${version}`, () => liveSnippets(markup, version)),
    for(route, markup, acceptLanguage) {
      if (!route.badge && route.analytics === null && route.card === undefined) return undefined
      const settings = settingsOf(route)
      if (isEmpty(settings)) return undefined
      const language = settings.hasBanner ? languageOf(acceptLanguage) : 'en'
      return keep(`${markup} ${language} ${settings.key}`, () => makeSnippets(settings, markup, language, house))
    },
  }
}

function isEmpty({ badgeHost, trackers, hasBanner, card }: Settings): boolean {
  return badgeHost === undefined && trackers.length === 0 && !hasBanner && card === undefined
}

function readSettings({ badge, host, analytics, card }: ServedSite, publicPort: number | undefined): Settings {
  const trackers = trackersOf(analytics ?? {})
  const badgeHost = badge ? host : undefined
  const picture = card && addressOf({ publicPort }, host) + cardTarget(card[0])
  return {
    badgeHost,
    trackers,
    hasBanner: needsBanner(analytics, trackers),
    card: picture,
    key: JSON.stringify([badgeHost, analytics, picture]),
  }
}

function needsBanner(analytics: Analytics | null, trackers: readonly Tracker[]): boolean {
  switch (analytics?.consent_banner ?? 'auto') {
    case 'on':
      return true
    case 'off':
      return false
    case 'auto':
      return trackers.some((tracker) => tracker.setsCookies)
  }
}

function makeSnippets(settings: Settings, markup: Markup, language: Language, house: House): Snippets {
  const { baseUrl, name } = house
  const style = settings.hasBanner ? house.consentStyle : ''
  const script = scriptOf(settings, language)
  const badgeStyle = settings.badgeHost === undefined ? '' : house.badgeStyle
  const element = markup === 'xhtml' ? xmlElement : htmlElement
  const head = element('style', style) + element('script', script)
  const badge = settings.badgeHost === undefined ? '' : badgeHtml({ baseUrl, host: settings.badgeHost, name })
  const body = badge + element('style', badgeStyle)
  const frames = badge === '' || markup === 'xhtml' ? undefined : badgeFrames(badge, badgeStyle, name)
  const csp = needsOf(settings.trackers)
  const card = settings.card && cardMarkup(settings.card, markup)
  const parts = [head, body, frames?.open, frames?.close, card]
  return {
    markup,
    key: createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 12),
    head: Buffer.from(head),
    body: Buffer.from(body),
    card: card === undefined ? undefined : Buffer.from(card),
    frames: frames && { open: Buffer.from(frames.open), close: Buffer.from(frames.close) },
    csp: {
      ...csp,
      scriptSrc: [...hashes(script), ...csp.scriptSrc],
      styleSrc: [...hashes(style), ...hashes(badgeStyle)],
    },
    variesByLanguage: settings.hasBanner,
  }
}

/** Open Graph, and the one word that networks with a name of their own for it want. */
function cardMarkup(address: string, markup: Markup): string {
  const end = markup === 'xhtml' ? '/>' : '>'
  return [
    `<meta property="og:image" content="${escape(address)}"${end}`,
    `<meta property="og:image:width" content="${CARD_WIDTH}"${end}`,
    `<meta property="og:image:height" content="${CARD_HEIGHT}"${end}`,
    `<meta name="twitter:card" content="summary_large_image"${end}`,
  ].join('')
}

const NO_NEEDS: CspNeeds = { scriptSrc: [], connectSrc: [], imgSrc: [], styleSrc: [], frameSrc: [] }

/** A script in the head, and nothing else. */
function scriptSnippets(script: string, markup: Markup, needs: Partial<CspNeeds>): Snippets {
  const head = (markup === 'xhtml' ? xmlElement : htmlElement)('script', script)
  return {
    markup,
    key: createHash('sha256').update(head).digest('hex').slice(0, 12),
    head: Buffer.from(head),
    body: Buffer.alloc(0),
    csp: { ...NO_NEEDS, ...needs, scriptSrc: hashes(script) },
    variesByLanguage: false,
  }
}

function reviewSnippets(markup: Markup, baseUrl: string): Snippets {
  const script = `((w,d)=>{"use strict";${inlineScripts('review-helper')}\nstartReview(${JSON.stringify(baseUrl)})})(window,document)`
  return { ...scriptSnippets(script, markup, {}), frameAncestor: baseUrl }
}

function liveSnippets(markup: Markup, version: number): Snippets {
  const script = `((w,d)=>{"use strict";${inlineScripts('live-preview')}\nfollowPreview(${version})})(window,document)`
  return scriptSnippets(script, markup, { connectSrc: ["'self'"] })
}

/** Without a banner everything starts at once; with one, what sets cookies waits for the visitor's word. */
function scriptOf({ trackers, hasBanner }: Settings, language: Language): string {
  if (trackers.length === 0 && !hasBanner) return ''
  const waiting = hasBanner ? trackers.filter((tracker) => tracker.setsCookies) : []
  const atOnce = trackers.filter((tracker) => !waiting.includes(tracker))
  const names: string[] = trackers.map((tracker) => tracker.script)
  const calls = atOnce.map((tracker) => tracker.start)
  if (hasBanner) {
    names.push('consent')
    calls.push(consentCall(language, waiting.map((tracker) => tracker.start).join('')))
  }
  return `((w,d)=>{"use strict";${inlineScripts(...names)}\n${calls.join('')}})(window,document)`
}

/** What runs in the page: functions that know `window` as `w` and `document` as `d`. */
const inlineScripts = readInlineScripts(path.join(import.meta.dirname, 'browser'))

type MakeElement = (name: 'style' | 'script', text: string) => string

const htmlElement: MakeElement = (name, text) => (text === '' ? '' : `<${name}>${text}</${name}>`)

/** In XML a script is text like any other. What is read is the same, and so is its hash in a policy. */
const xmlElement: MakeElement = (name, text) => htmlElement(name, escape(text))

function hashes(text: string): string[] {
  return text === '' ? [] : [`'sha256-${createHash('sha256').update(text).digest('base64')}'`]
}

function needsOf(trackers: readonly Tracker[]): CspNeeds {
  const all = (kind: keyof Tracker['csp']): string[] => [
    ...new Set(trackers.flatMap((tracker) => tracker.csp[kind] ?? [])),
  ]
  return { ...NO_NEEDS, scriptSrc: all('scriptSrc'), connectSrc: all('connectSrc'), imgSrc: all('imgSrc') }
}
