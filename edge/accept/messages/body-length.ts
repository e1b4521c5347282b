/** How many bytes follow the head of an answer. */
import type { HeaderList } from '../../context.ts'

/** Undefined: as many as come, since the head names no length (RFC 9110 §8.6). */
export function bodyBytesOf(method: string, status: number, headers: HeaderList): number | undefined {
  // A length is what a GET would have got (RFC 9110 §8.6); these answers have no body (RFC 9112 §6.3).
  if (method === 'HEAD' || status === 204 || status === 304) return 0
  for (let index = 0; index < headers.length; index += 2)
    if (headers[index] === 'content-length') return Number(headers[index + 1])
  return undefined
}
