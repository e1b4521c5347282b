/**
 * `vercel.json`: redirects come before files, rewrites after them; sources are patterns of path-to-regexp, of which
 * placeholders for a segment and for all the rest have a counterpart here. Pure.
 */
import {
  addCleanUrls,
  addTrailingSlash,
  fieldsOf,
  ignoreOthers,
  keyedHeaders,
  listOf,
  newDraft,
  scalarText,
  withSplat,
  type Fields,
  type PageLayout,
  type Translation,
  type TranslationDraft,
} from './host-file.ts'

const KNOWN = ['redirects', 'rewrites', 'headers', 'cleanUrls', 'trailingSlash']

export function translateVercel(text: string, layout: PageLayout): Translation {
  const draft = newDraft()
  const config = fieldsOf(JSON.parse(text))
  if (config['cleanUrls'] === true) addCleanUrls(draft, 'cleanUrls', 308)
  if (typeof config['trailingSlash'] === 'boolean')
    addTrailingSlash(draft, 'trailingSlash', config['trailingSlash'], layout)
  eachRule(draft, config, 'redirects', (at, rule, source) => {
    draft.redirects.push({
      at,
      from: source.from,
      to: source.destination(scalarText(rule['destination'])),
      status: redirectStatus(rule),
      force: true,
    })
  })
  eachRule(draft, config, 'rewrites', (at, rule, source) => {
    const to = source.destination(scalarText(rule['destination']))
    draft.redirects.push({ at, from: source.from, to, status: 200, force: false })
  })
  eachRule(draft, config, 'headers', (at, rule, source) => {
    draft.headers.push({ at, from: source.from, set: keyedHeaders(rule['headers']) })
  })
  ignoreOthers(draft, config, KNOWN)
  return draft
}

function redirectStatus({ permanent, statusCode }: Fields): number {
  if (typeof permanent === 'boolean') return permanent ? 308 : 307
  return Number(statusCode ?? 308)
}

function eachRule(
  draft: TranslationDraft,
  config: Fields,
  name: string,
  take: (at: string, rule: Fields, source: Source) => void,
): void {
  for (const [index, entry] of listOf(config[name]).entries()) {
    const at = `${name}[${index}]`
    const rule = fieldsOf(entry)
    const condition = ['has', 'missing'].find((key) => listOf(rule[key]).length > 0)
    const source = condition === undefined ? sourceOf(scalarText(rule['source'])) : undefined
    if (source) take(at, rule, source)
    else
      draft.ignored.push(
        condition === undefined
          ? `${at}: its source is a pattern that has no counterpart here, so the rule was left out.`
          : `${at}: the condition "${condition}" is not supported, so the rule was left out.`,
      )
  }
}

interface Source {
  readonly from: string
  /** A destination with the names of `from`. */
  destination(to: string): string
}

/** `:path*` and `(.*)` at the end are all the rest; `:id` is a segment. Other expressions have no counterpart. */
function sourceOf(source: string): Source | undefined {
  const rest = /\/(?::(\w+)(?:\*|\(\.\*\))|\(\.\*\))$/.exec(source)
  const before = rest ? source.slice(0, rest.index) : source
  if (/[(){}?+*[\]|\\]/.test(before) || !source.startsWith('/')) return undefined
  if (!before.split('/').every((segment) => /^(?::\w+|[^:]*)$/.test(segment))) return undefined
  const name = rest?.[1]
  return {
    from: rest ? `${before}/*` : before,
    destination: (to) => (name === undefined ? to.replaceAll(/\$1(?!\d)/g, ':splat') : withSplat(to, name)),
  }
}
