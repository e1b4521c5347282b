/** `firebase.json`: redirects come before files, rewrites after them; sources are globs. Pure. */
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
/** Which folder is published was decided when it was sent. */
const SETTLED = ['public', 'site', 'target', 'ignore']
/** `@(js|css)`: a list of more is not written by hand. */
const MAX_ALTERNATIVES = 50

export function translateFirebase(text: string, layout: PageLayout): Translation {
  const draft = newDraft()
  const whole = fieldsOf(JSON.parse(text))
  const sites = Array.isArray(whole['hosting']) ? (whole['hosting'] as unknown[]) : [whole['hosting']]
  if (sites.length > 1) draft.ignored.push('hosting: it describes several sites, so none of their rules count.')
  const hosting = sites.length > 1 ? {} : fieldsOf(sites[0])
  if (hosting['cleanUrls'] === true) addCleanUrls(draft, 'hosting.cleanUrls', 301)
  if (typeof hosting['trailingSlash'] === 'boolean')
    addTrailingSlash(draft, 'hosting.trailingSlash', hosting['trailingSlash'], layout)
  eachRule(draft, hosting, 'redirects', (at, rule, { from, destination }) => {
    const to = destination(scalarText(rule['destination']))
    draft.redirects.push({ at, from, to, status: Number(rule['type'] ?? 301), force: true })
  })
  eachRule(draft, hosting, 'rewrites', (at, rule, { from, destination }) => {
    if (typeof rule['destination'] !== 'string') {
      draft.ignored.push(`${at}: it runs a program, and drops are files, so the rule was left out.`)
      return
    }
    draft.redirects.push({ at, from, to: destination(rule['destination']), status: 200, force: false })
  })
  eachRule(draft, hosting, 'headers', (at, rule, { from }) => {
    draft.headers.push({ at, from, set: keyedHeaders(rule['headers']) })
  })
  ignoreOthers(draft, hosting, [...KNOWN, ...SETTLED])
  ignoreOthers(draft, whole, ['hosting'])
  return draft
}

function eachRule(
  draft: TranslationDraft,
  hosting: Fields,
  name: string,
  take: (at: string, rule: Fields, source: GlobSource) => void,
): void {
  for (const [index, entry] of listOf(hosting[name]).entries()) {
    const at = `hosting.${name}[${index}]`
    const rule = fieldsOf(entry)
    const sources = globSources(scalarText(rule['source'] ?? rule['glob']))
    if (sources.length === 0)
      draft.ignored.push(`${at}: its source is a pattern that has no counterpart here, so the rule was left out.`)
    for (const source of sources) take(at, rule, source)
  }
}

interface GlobSource {
  readonly from: string
  destination(to: string): string
}

/** `@(js|css)` is written out, and `:name*` is all the rest. Empty when a glob has no counterpart. */
function globSources(glob: string): GlobSource[] {
  if (glob === '') return []
  const path = glob.startsWith('/') ? glob : `/${glob}`
  const rest = /\/:(\w+)\*$/.exec(path)
  if (rest) {
    const destination = (to: string): string => withSplat(to, rest[1] ?? '')
    return globPaths(`${path.slice(0, rest.index)}/**`).map((from) => ({ from, destination }))
  }
  const found = alternativesOf(path).map(globPaths)
  const isWhole = found.every((paths) => paths.length > 0)
  return isWhole ? found.flat().map((from) => ({ from, destination: (to) => to })) : []
}

function alternativesOf(glob: string): string[] {
  const [, before = '', list = '', after = ''] = /^([^@()]*)@\(([^()]*)\)([^@()]*)$/.exec(glob) ?? []
  return list === '' ? [glob] : list.split('|', MAX_ALTERNATIVES).map((one) => before + one + after)
}

/** `**` is all the rest or any folders, `*` a whole segment. */
function globPaths(path: string): string[] {
  if (/[()[\]{}!+?@\\]/.test(path)) return []
  const at = path.indexOf('/**')
  if (at < 0) return wholeSegments(path)
  const before = path.slice(0, at)
  const after = path.slice(at + '/**'.length)
  if (before.includes('*')) return []
  if (after === '' || after === '/*') return [`${before}/*`]
  if (/^\/\*[^*/]+$/.test(after)) return [`${before}/*${after.slice('/*'.length)}`]
  return /^\/[^*]+$/.test(after) ? [before + after, `${before}/*${after}`] : []
}

function wholeSegments(path: string): string[] {
  const segments = path.split('/').map((segment, index) => (segment === '*' ? `:segment${index}` : segment))
  return segments.some((segment) => segment.includes('*')) ? [] : [segments.join('/')]
}
