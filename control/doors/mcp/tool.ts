/** What a tool is: a name, words, a strict schema, hints about what it does, and one call to a service. */
import type { InputRequiredResult, ServerContext, ToolAnnotations } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Look } from '../../../shared/pages/look.ts'
import type { Clock } from '../../../shared/running/clock.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { Actor, Scope } from '../../ground/actor.ts'
import type { Domains } from '../../drops/domains/domains.ts'
import type { Publishing } from '../../drops/publishing/contract.ts'
import type { ContentUploads } from '../../drops/sites/uploads/content-uploads/content-uploads.ts'
import type { QuickPublish } from '../../drops/sites/versions/quick-publish.ts'
import type { Sites } from '../../drops/sites/sites.ts'
import type { ViewerSharing } from '../../drops/visiting/sharing.ts'
import type { Versions } from '../../drops/sites/versions/versions.ts'
import type { Previews } from '../../drops/sites/kept/previews.ts'
import type { Guide } from './guides.ts'

export interface ToolServices {
  sites: Pick<Sites, 'list' | 'get' | 'findId' | 'patch' | 'choose' | 'delete'>
  versions: Pick<Versions, 'list' | 'requireId' | 'promote' | 'liveManifest'>
  previews: Pick<Previews, 'list' | 'promote' | 'remove'>
  quickPublish: QuickPublish
  viewerSharing: Pick<ViewerSharing, 'viewers' | 'add' | 'addLink'>
  contentUploads: Pick<ContentUploads, 'create' | 'use'>
  domains: Pick<Domains, 'list' | 'add' | 'check' | 'makeMain' | 'remove'>
  publishing: Pick<Publishing, 'readBlob'>
  clock: Clock
  log: Log
  baseUrl: string
  /** The name by which assistants know the service. */
  look: Look
  /** What the docs tell people. */
  guides: readonly Guide[]
}

/** One call of a tool. */
export interface Call {
  readonly actor: Actor
  readonly services: ToolServices
  readonly request: ServerContext['mcpReq']
  /** The client can ask its person a question for us. */
  readonly canAsk: boolean
  /** Tells the client how far a long call is; does nothing when it did not ask. */
  progress(done: number, total: number, message: string): void
}

/** Facts, or the text of a file followed by facts about it; or a question to the person first. */
export type Answer =
  | { readonly facts: Record<string, unknown> }
  | { readonly text: string; readonly facts: Record<string, unknown> }
  | InputRequiredResult

export interface Tool {
  readonly name: string
  readonly description: string
  /** The scope that a credential needs: without it the tool is not listed. */
  readonly needs: Scope
  readonly annotations: ToolAnnotations
  readonly input: z.ZodObject
  /** What every answer has at least; others are facts beside it. */
  readonly output: z.ZodObject
  run(args: unknown, call: Call): Promise<Answer>
}

type Hints = 'reads' | 'adds' | 'changes' | 'destroys'

/** Stated where the default of the protocol says something else: a tool writes, destroys, and is not repeatable. */
const ANNOTATIONS: Readonly<Record<Hints, ToolAnnotations>> = {
  reads: { readOnlyHint: true },
  adds: { readOnlyHint: false, destructiveHint: false },
  changes: { readOnlyHint: false, destructiveHint: true },
  destroys: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
}

type Arguments<Shape extends z.ZodRawShape> = z.infer<z.ZodObject<Shape, z.core.$strict>>

export function defineTool<Shape extends z.ZodRawShape>(tool: {
  name: string
  description: string
  needs: Scope
  hints: Hints
  input: Shape
  output: z.ZodRawShape
  run(args: Arguments<Shape>, call: Call): Promise<Answer>
}): Tool {
  return {
    name: tool.name,
    description: tool.description,
    needs: tool.needs,
    annotations: ANNOTATIONS[tool.hints],
    input: z.strictObject(tool.input),
    output: z.object(tool.output),
    run: (args, call) => tool.run(args as Arguments<Shape>, call),
  }
}

type ObjectSchema = { type: 'object'; [key: string]: unknown }

export function inputSchemaOf({ input }: Tool): ObjectSchema {
  return briefSchemaOf(input)
}

/** The schema names the facts that programs go on with, and says no more about them. */
export function outputSchemaOf({ output }: Tool): ObjectSchema {
  return outlineOf(output)
}

/** Which facts there are, without a word about which must be. */
export function outlineOf(output: z.ZodObject): ObjectSchema {
  const { required: _, additionalProperties: __, ...schema } = briefSchemaOf(output)
  return schema as ObjectSchema
}

/** JSON Schema without what says nothing: a model pays for every word of it in every conversation. */
export function briefSchemaOf(object: z.ZodObject): ObjectSchema {
  const { $schema: _, ...schema } = z.toJSONSchema(object, {
    io: 'input',
    unrepresentable: 'any',
    override({ jsonSchema, path }) {
      // That names which nobody knows are refused is said once, for the whole.
      if (path.length > 0) delete jsonSchema.additionalProperties
      delete jsonSchema.examples
      delete jsonSchema.minimum
      delete jsonSchema.maximum
      delete jsonSchema.maxLength
      delete jsonSchema.minLength
      delete jsonSchema.maxItems
      delete jsonSchema.minItems
      delete jsonSchema.default
    },
  })
  return schema as ObjectSchema
}
