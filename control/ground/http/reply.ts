/** Replies in one word. */
import type { Readable } from 'node:stream'
import type { Reply } from './route.ts'

type Headers = Reply['headers']

export function json(status: number, body: unknown, headers: Headers = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', ...headers },
    body: JSON.stringify(body),
  }
}

export function html(status: number, body: string, headers: Headers = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', ...headers },
    body,
  }
}

export function noContent(headers: Headers = {}): Reply {
  return { status: 204, headers: { 'cache-control': 'no-store', ...headers } }
}

/** After a form: 303, so that reloading does not send it again. */
export function seeOther(location: string, headers: Headers = {}): Reply {
  return { status: 303, headers: { location, 'cache-control': 'no-store', ...headers } }
}

export function stream(status: number, body: Readable, headers: Headers): Reply {
  return { status, headers, body }
}

/** Attributes of every cookie of ours; the name must begin with `__Host-`. */
export function cookie(
  name: `__Host-${string}`,
  value: string,
  options: { maxAgeSeconds?: number; sameSite?: 'Lax' | 'Strict' } = {},
): string {
  const age = options.maxAgeSeconds === undefined ? '' : `; Max-Age=${options.maxAgeSeconds}`
  return `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=${options.sameSite ?? 'Lax'}${age}`
}
