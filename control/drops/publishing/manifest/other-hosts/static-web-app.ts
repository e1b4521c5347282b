/** `staticwebapp.config.json`: routes come before files, the fallback after them; `*` stands at the end. Pure. */
import {
  addTrailingSlash,
  fieldsOf,
  ignoreOthers,
  listOf,
  newDraft,
  scalarText,
  type Fields,
  type PageLayout,
  type Translation,
  type TranslationDraft,
} from './host-file.ts'

const KNOWN = ['routes', 'navigationFallback', 'responseOverrides', 'globalHeaders', 'trailingSlash']
/** `*.{png,jpg}`: a list of more is not written by hand. */
const MAX_ALTERNATIVES = 50

export function translateStaticWebApp(text: string, layout: PageLayout): Translation {
  const draft = newDraft()
  const config = fieldsOf(JSON.parse(text))
  const slash = config['trailingSlash']
  if (slash === 'always' || slash === 'never') addTrailingSlash(draft, 'trailingSlash', slash === 'always', layout)
  for (const [index, entry] of listOf(config['routes']).entries()) addRoute(draft, `routes[${index}]`, fieldsOf(entry))
  addFallback(draft, fieldsOf(config['navigationFallback']))
  addOverrides(draft, fieldsOf(config['responseOverrides']))
  const global = headersIn(config['globalHeaders'])
  if (global.length > 0) draft.headers.unshift({ at: 'globalHeaders', from: '/*', set: global })
  ignoreOthers(draft, config, KNOWN)
  return draft
}

function addRoute(draft: TranslationDraft, at: string, route: Fields): void {
  const { redirect, rewrite, statusCode } = route
  const condition = ['allowedRoles', 'methods'].find((name) => listOf(route[name]).length > 0)
  if (condition === 'allowedRoles' && !listOf(route['allowedRoles']).includes('anonymous')) {
    draft.ignored.push(`${at}: allowedRoles protects nothing here; everyone can read ${scalarText(route['route'])}.`)
    return
  }
  if (condition === 'methods') {
    draft.ignored.push(`${at}: methods is not supported, so the rule was left out.`)
    return
  }
  const set = headersIn(route['headers'])
  for (const from of routeSources(scalarText(route['route']))) {
    if (typeof redirect === 'string')
      draft.redirects.push({ at, from, to: redirect, status: Number(statusCode ?? 302), force: true })
    else if (typeof rewrite === 'string') draft.redirects.push({ at, from, to: rewrite, status: 200, force: true })
    else if (statusCode === 404) draft.redirects.push({ at, from, to: '/404.html', status: 404, force: true })
    else if (statusCode !== undefined && statusCode !== 200)
      draft.ignored.push(`${at}: a status of ${scalarText(statusCode)} without a destination cannot be set here.`)
    if (set.length > 0) draft.headers.push({ at, from, set })
  }
}

function addFallback(draft: TranslationDraft, { rewrite, exclude }: Fields): void {
  if (typeof rewrite !== 'string') return
  for (const pattern of listOf(exclude))
    for (const from of routeSources(scalarText(pattern)))
      draft.redirects.push({ at: 'navigationFallback.exclude', from, to: '/404.html', status: 404, force: false })
  draft.redirects.push({ at: 'navigationFallback', from: '/*', to: rewrite, status: 200, force: false })
}

function addOverrides(draft: TranslationDraft, overrides: Fields): void {
  for (const [status, entry] of Object.entries(overrides)) {
    const { rewrite, redirect } = fieldsOf(entry)
    const at = `responseOverrides.${status}`
    if (status === '404' && typeof rewrite === 'string')
      draft.redirects.push({ at, from: '/*', to: rewrite, status: 404, force: false })
    else if (status === '404' && typeof redirect === 'string')
      draft.redirects.push({ at, from: '/*', to: redirect, status: 302, force: false })
    else draft.ignored.push(`${at}: this answer cannot be replaced here.`)
  }
}

function headersIn(value: unknown): [name: string, value: string][] {
  return Object.entries(fieldsOf(value)).map(([name, said]) => [name, scalarText(said)])
}

/** `/images/*.{png,jpg}` is written out. */
function routeSources(route: string): string[] {
  const alternatives = /^([^{}]*)\{([^{}]*)\}([^{}]*)$/.exec(route)
  if (!alternatives) return [route]
  const [, before = '', list = '', after = ''] = alternatives
  return list.split(',', MAX_ALTERNATIVES).map((one) => before + one.trim() + after)
}
