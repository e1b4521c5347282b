/** One route as OpenAPI describes it: parameters, bodies and answers from its schemas, with a sample of each. */
import { z } from 'zod'
import type { CredentialNeed } from '../../actor.ts'
import { onFirstUse } from '../../../../shared/values/on-first-use.ts'
import { sampleOf, type Schema } from './sample.ts'

export type Access =
  /** No credentials needed. */
  | 'public'
  /** Signed in; the e-mail may still be unverified (the exceptions that the specification lists). */
  | 'account'
  /** Signed in and verified. */
  | 'verified'

/** What a route says about itself; /api/v1/openapi.json repeats it. */
export interface OperationSpec {
  readonly method: string
  readonly path: string
  readonly access: Access
  /** What it takes of the credential: checked before the body is read. */
  readonly needs: CredentialNeed
  /** A part of publishing to a named preview: credentials for one preview may call it. */
  readonly isOfPreview?: boolean
  readonly summary: string
  readonly tag: string
  /** JSON. */
  readonly body?: z.ZodType
  readonly query?: z.ZodType
  /** Request headers that mean something here. */
  readonly headers?: z.ZodType
  /** The fields of a multipart form, which the handler reads itself while they arrive. */
  readonly form?: z.ZodType
  /** Forms can be filled in more than one way: each by a name that says which. Names of files stand for files. */
  readonly formSamples?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** The body is the bytes of one file, which the handler reads itself. */
  readonly takesBytes?: boolean
  readonly status: number
  /** What is answered as JSON. */
  readonly output?: z.ZodType | undefined
  /** The type of an answer that is not JSON. */
  readonly produces?: string
  /** Headers of the answer that mean something. */
  readonly answerHeaders?: z.ZodType
}

interface Media {
  readonly schema: Schema
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly summary?: string; readonly value: unknown }>>
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly description?: string
  readonly schema: Schema
  readonly example?: unknown
}

export interface Answer {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly description?: string; readonly schema: Schema }>>
  readonly content?: Readonly<Record<string, Media>>
}

export interface Operation {
  readonly summary: string
  readonly tags: readonly string[]
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, Answer>>
}

/** How OpenAPI says what an operation needs. */
const SECURITY: Readonly<Record<CredentialNeed, Operation['security']>> = {
  nothing: [],
  read: [{ token: ['read'] }],
  publish: [{ token: ['publish'] }],
  manage: [{ token: ['manage'] }],
  'read-people': [{ token: ['read'] }, { session: [] }],
  people: [{ session: [] }],
  session: [{ session: [] }],
}

const BYTES: Schema = { type: 'string', format: 'binary' }

/** Described when someone asks: two hundred descriptions take a sixth of a start. */
export function describeOperation(spec: OperationSpec): () => Operation {
  return onFirstUse(() => operationOf(spec))
}

function operationOf(spec: OperationSpec): Operation {
  const parameters = [
    ...pathParameters(spec.path),
    ...(spec.query ? parametersOf('query', spec.query) : []),
    ...(spec.headers ? parametersOf('header', spec.headers) : []),
  ]
  const content = requestContent(spec)
  return {
    summary: spec.summary,
    tags: [spec.tag],
    security: SECURITY[spec.needs],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(content ? { requestBody: { required: isRequired(spec), content } } : {}),
    responses: {
      [spec.status]: successAnswer(spec),
      default: {
        description: 'Refused, or failed: what happened and what to do.',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  }
}

/** `/sites/:id` → the id of a site. */
function pathParameters(path: string): Parameter[] {
  const parts = path.split('/')
  return parts.flatMap((part, index): Parameter[] => {
    if (!part.startsWith(':')) return []
    const name = part.slice(1)
    const thing = name === 'id' ? (parts[index - 1] ?? '').replace(/s$/, '') : name.replace(/_id$/, '')
    const description = name.endsWith('id') ? `Id of the ${thing}.` : `The ${thing}.`
    return [{ name, in: 'path', required: true, description, schema: { type: 'string' } }]
  })
}

function parametersOf(place: 'query' | 'header', schema: z.ZodType): Parameter[] {
  const { properties = {}, required = [] } = toJsonSchema(schema, 'input')
  return Object.entries(properties).map(([name, { description, examples, ...property }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: property,
    ...(examples === undefined ? {} : { example: examples[0] }),
  }))
}

function requestContent({ body, form, formSamples, takesBytes }: OperationSpec): Record<string, Media> | undefined {
  if (body) {
    const schema = toJsonSchema(body, 'input')
    return { 'application/json': { schema, example: sampleOf(schema, 'request') } }
  }
  if (form) {
    const schema = toJsonSchema(form, 'input')
    const samples = formSamples ?? { form: sampleOf(schema, 'request') as Record<string, unknown> }
    const examples = Object.fromEntries(Object.entries(samples).map(([name, value]) => [name, { value }]))
    return { 'multipart/form-data': { schema, examples } }
  }
  return takesBytes ? { 'application/octet-stream': { schema: BYTES } } : undefined
}

/** A body in which every field is optional may be left out as a whole. */
function isRequired({ body }: OperationSpec): boolean {
  return !body?.safeParse({}).success
}

function successAnswer({ output, produces, answerHeaders }: OperationSpec): Answer {
  const headers =
    answerHeaders &&
    Object.fromEntries(
      parametersOf('header', answerHeaders).map(({ name, description, schema }) => [
        name,
        { ...(description === undefined ? {} : { description }), schema },
      ]),
    )
  return {
    description: output || produces !== undefined ? 'Success' : 'Done, no content',
    ...(headers ? { headers } : {}),
    ...(output ? { content: { 'application/json': jsonAnswer(output) } } : {}),
    ...(produces === undefined ? {} : { content: { [produces]: { schema: BYTES } } }),
  }
}

function jsonAnswer(output: z.ZodType): Media {
  const schema = toJsonSchema(output, 'output')
  return { schema, example: sampleOf(schema, 'answer') }
}

function toJsonSchema(schema: z.ZodType, io: 'input' | 'output'): Schema {
  // The long pattern of a time goes: its `format` says the same.
  const { $schema: _, ...described } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    target: 'draft-2020-12',
    override: ({ jsonSchema }) => {
      if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
    },
  })
  return described as Schema
}
