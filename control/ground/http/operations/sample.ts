/** A value that fits a schema, put together from the examples of its fields. */

/** The parts of JSON Schema that our schemas use. */
export interface Schema {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, Schema>>
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly description?: string
  readonly examples?: readonly unknown[]
  readonly default?: unknown
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly additionalProperties?: boolean | Schema
}

/** Stands where a field has no example; a test says that none does. */
export const NO_EXAMPLE = 'text'

/** `request`: fields that must be sent, and those with an example. `answer`: all that are always there. */
export function sampleOf(schema: Schema, kind: 'request' | 'answer', defs = schema.$defs ?? {}): unknown {
  const sample = (part: Schema): unknown => sampleOf(part, kind, defs)
  if (schema.examples) return schema.examples[0]
  if (schema.$ref !== undefined) return sample(defs[schema.$ref.replace('#/$defs/', '')] ?? {})
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.anyOf) return sample(schema.anyOf[0] ?? {})
  if (schema.default !== undefined) return schema.default
  switch ([schema.type].flat()[0]) {
    case 'object':
      return sampleObject(schema, kind, sample)
    case 'array':
      return schema.items ? [sample(schema.items)] : []
    case 'boolean':
      return false
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 0, 0)
    case 'null':
      return null
    default:
      return NO_EXAMPLE
  }
}

function sampleObject(schema: Schema, kind: 'request' | 'answer', sample: (part: Schema) => unknown): unknown {
  const required = new Set(schema.required ?? [])
  const shown = Object.entries(schema.properties ?? {}).filter(
    ([name, property]) => required.has(name) || (kind === 'request' && property.examples !== undefined),
  )
  return Object.fromEntries(shown.map(([name, property]) => [name, sample(property)]))
}
