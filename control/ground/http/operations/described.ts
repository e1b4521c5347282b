/** What readers of the API reference need of a field: a sentence, and a value as it really looks. */
import type { z } from 'zod'

export function described<Schema extends z.ZodType>(
  schema: Schema,
  description: string,
  ...examples: z.input<Schema>[]
): Schema {
  return schema.meta({ description, ...(examples.length > 0 ? { examples } : {}) })
}
