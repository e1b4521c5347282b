/** A request as a page sees it that answers in the place of a form. */
import type { Request } from '../../../ground/http/route.ts'

/** The page at `path` is asked for, with these words of the form as its query. */
export function asPageRequest(
  request: Request,
  page: { path: string; params: Readonly<Record<string, string>>; query: URLSearchParams },
): Request {
  return { ...delegated(request), ...page, method: 'GET' }
}

/** The request as it would be with the cookie that its answer sets. */
export function withCookie(request: Request, setCookie: string): Request {
  const [pair = ''] = setCookie.split(';', 1)
  const [given, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]
  return { ...delegated(request), cookie: (name) => (name === given ? value : request.cookie(name)) }
}

function delegated(request: Request): Request {
  return {
    method: request.method,
    path: request.path,
    query: request.query,
    params: request.params,
    ip: request.ip,
    signal: request.signal,
    header: (name) => request.header(name),
    cookie: (name) => request.cookie(name),
    json: (maxBytes) => request.json(maxBytes),
    form: (maxBytes) => request.form(maxBytes),
    text: (maxBytes) => request.text(maxBytes),
    bytes: (maxBytes) => request.bytes(maxBytes),
    stream: () => request.stream(),
    multipart: (onPart, options) => request.multipart(onPart, options),
    hold: (bytes) => request.hold(bytes),
  }
}

/** The addresses of forms are shorter; what a stranger says is one may be anything. */
const MAX_PATH_CHARS = 500

/** What stands at the `:name` parts of `pattern`; undefined where the path is another. */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  if (path.length > MAX_PATH_CHARS) return undefined
  const [wanted, given] = [pattern.split('/'), path.split('/')]
  if (wanted.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? ''
    if (part.startsWith(':') && /^[\w-]+$/.test(value)) params[part.slice(1)] = value
    else if (part !== value) return undefined
  }
  return params
}

/** The path with its `:name` parts filled in. */
export function fillPath(pattern: string, params: Readonly<Record<string, string>>): string {
  return pattern.replace(/:(\w+)/g, (_part, name: string) => encodeURIComponent(params[name] ?? ''))
}
