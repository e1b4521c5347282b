/**
 * Text that people enter: titles, names, messages, passwords, addresses. It holds characters only. U+0000 and halves of
 * surrogate pairs are none: Postgres refuses the first, and the second turn into something else on their way. Every door
 * looks at all that comes in with `requireTexts`, so that no field can be forgotten, unless it cannot hold any. The content of pages is content.
 */
import { errors } from '../contracts/errors.ts'

/** Fields that carry a page, whatever is in it. */
const CONTENT_FIELDS: ReadonlySet<string> = new Set(['content', 'draft', 'markdown', 'text'])

export function isText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** Whether characters of JSON are named by number. In valid UTF-8 a text that is none can be told in no other way. */
export function hasEscapes(json: string): boolean {
  return json.includes('\\u')
}

/** Throws invalid_request when a text in there is none, at whatever depth; it names the field. */
export function requireTexts(value: unknown, path: readonly string[] = []): void {
  if (typeof value === 'string') {
    if (!isText(value)) throw errors.noText(path.join('.'))
  } else if (Array.isArray(value)) {
    for (const item of value) requireTexts(item, path)
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, field] of Object.entries(value)) requireField(name, field, path)
  }
}

/** The fields of a form. */
export function requireFields(fields: Iterable<readonly [string, string]>): void {
  for (const [name, value] of fields) requireField(name, value, [])
}

function requireField(name: string, value: unknown, path: readonly string[]): void {
  if (!isText(name)) throw errors.noText(path.join('.'))
  if (!(typeof value === 'string' && CONTENT_FIELDS.has(name))) requireTexts(value, [...path, name])
}
