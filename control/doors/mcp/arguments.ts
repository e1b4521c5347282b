/** What an assistant sends to a tool: checked strictly, refused in words that say how to write it. */
import { z } from 'zod'
import { errors } from '../../../shared/contracts/errors.ts'
import { nearestName } from '../../../shared/values/nearest-name.ts'
import { requireTexts } from '../../../shared/values/text.ts'

/** Throws invalid_request; an unknown name comes with the one that was probably meant. */
export function readArguments<Schema extends z.ZodObject>(schema: Schema, args: unknown): z.infer<Schema> {
  requireTexts(args)
  const parsed = schema.safeParse(args ?? {})
  if (parsed.success) return parsed.data
  throw errors.invalidRequest(
    parsed.error.issues
      .slice(0, 3)
      .map((issue) => issueText(schema, issue))
      .join(' '),
  )
}

function issueText(schema: z.ZodObject, issue: z.core.$ZodIssue): string {
  const at = issue.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')
  const place = at.replace(/^\./, '')
  if (issue.code !== 'unrecognized_keys') {
    const sentence = issue.message.endsWith('.') ? issue.message : `${issue.message}.`
    return `${place === '' ? 'The arguments' : place}: ${sentence}`
  }
  const known = namesAt(schema, issue.path)
  return issue.keys
    .map((key) => {
      const nearest = nearestName(key, known)
      const hint = nearest === undefined ? `Known are ${known.join(', ')}.` : `Did you mean "${nearest}"?`
      return `There is no argument "${place === '' ? key : `${place}.${key}`}". ${hint}`
    })
    .join(' ')
}

/** The names that the object at a path of the arguments takes. */
function namesAt(schema: z.ZodObject, path: readonly PropertyKey[]): string[] {
  let current: z.core.$ZodType = schema
  for (const part of path) {
    current = unwrapped(current)
    if (current instanceof z.ZodArray) current = current.element
    else if (current instanceof z.ZodObject) {
      const property = (current.shape as Record<PropertyKey, z.core.$ZodType>)[part]
      if (!property) return []
      current = property
    }
  }
  const found = unwrapped(current)
  return found instanceof z.ZodObject ? Object.keys(found.shape) : []
}

function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  return schema instanceof z.ZodOptional ? (schema.unwrap() as z.core.$ZodType) : schema
}

/** Text, or base64 exactly as RFC 4648 §4 writes it: what decodes to something else must not be published. */
export function decodeContent(path: string, content: string, encoding: 'utf8' | 'base64' | undefined): Buffer {
  if (encoding !== 'base64') return Buffer.from(content)
  if (/^data:/i.test(content))
    throw errors.invalidRequest(`The content of "${path}" is a data: URL. Send only what follows the comma.`)
  const text = content.replaceAll(/[\r\n\t ]/g, '')
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64') !== text)
    throw errors.invalidRequest(
      `The content of "${path}" is not valid base64 (letters, digits, + and /, padded with = to a multiple of 4).`,
    )
  return bytes
}
