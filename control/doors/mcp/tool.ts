/** What a tool is: a name, words, a strict schema, hints about what it does, and one call to a service. */
import type { InputRequiredResult, ServerContext, ToolAnnotations } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Look } from '../../../shared/pages/look.ts'
import type { Clock } from '../../../shared/running/clock.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { Actor, Scope } from '../../ground/actor.ts'
import type { ControlConfig } from '../../ground/config.ts'
import type { Search } from '../search/search.ts'
import type { Domains } from '../../drops/domains/domains.ts'
import type { Publishers } from '../../drops/publishers/publishers.ts'
import type { Publishing } from '../../drops/publishing/contract.ts'
import type { ContentUploads } from '../../drops/sites/uploads/content-uploads/content-uploads.ts'
import type { QuickPublish } from '../../drops/sites/versions/quick-publish.ts'
import type { Sites } from '../../drops/sites/sites.ts'
import type { Reviewers } from '../../drops/review/reviewers.ts'
import type { Review } from '../../drops/threads/review.ts'
import type { ViewerSharing } from '../../drops/visiting/sharing.ts'
import type { Versions } from '../../drops/sites/versions/versions.ts'
import type { Previews } from '../../drops/sites/kept/previews.ts'
import type { Guide } from './guides.ts'

export interface ToolServices {
  sites: Pick<Sites, 'list' | 'get' | 'findId' | 'patch' | 'choose' | 'delete'>
  search: Pick<Search, 'find'>
  versions: Pick<Versions, 'list' | 'requireId' | 'promote' | 'liveManifest'>
  previews: Pick<Previews, 'list' | 'promote' | 'remove'>
  quickPublish: QuickPublish
  review: Pick<Review, 'list' | 'replyAll'>
  reviewers: Pick<Reviewers, 'member'>
  viewerSharing: Pick<ViewerSharing, 'viewers' | 'add' | 'addLink'>
  contentUploads: Pick<ContentUploads, 'create' | 'use'>
  publishers: Pick<Publishers, 'list' | 'add' | 'remove'>
  domains: Pick<Domains, 'list' | 'add' | 'check' | 'makeMain' | 'remove'>
  publishing: Pick<Publishing, 'readBlob'>
  clock: Clock
  log: Log
  baseUrl: string
  config: Pick<ControlConfig, 'look' | 'sitesDomain' | 'publicPort' | 'baseUrl'>
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
  /** What people read where a client shows it. */
  readonly title: string
  readonly description: string
  /** False: a name from before, which still works and is told to nobody. */
  readonly isListed: boolean
  /** Its answer is shown on a card by clients that can (card/result-card.ts). */
  readonly hasCard: boolean
  /** The scope that a credential needs: without it the tool is not listed. */
  readonly needs: Scope
  readonly annotations: ToolAnnotations
  readonly input: z.ZodObject
  /** What programs go on with; others are facts beside it. Left out where only a reader does. */
  readonly output: z.ZodObject
  run(args: unknown, call: Call): Promise<Answer>
}

type Hints = 'reads' | 'adds' | 'changes' | 'publishes'

/** All three are stated, whatever the protocol takes for granted: directories of assistants ask for it. `publishes`: strangers see it. */
const ANNOTATIONS: Readonly<Record<Hints, ToolAnnotations>> = {
  reads: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  adds: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  changes: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  publishes: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
}

type Arguments<Shape extends z.ZodRawShape> = z.infer<z.ZodObject<Shape, z.core.$strict>>

export function defineTool<Shape extends z.ZodRawShape>(tool: {
  name: string
  title: string
  description: string
  needs: Scope
  hints: Hints
  isListed?: false
  hasCard?: true
  input: Shape
  output?: z.ZodRawShape
  run(args: Arguments<Shape>, call: Call): Promise<Answer>
}): Tool {
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description,
    isListed: tool.isListed ?? true,
    hasCard: tool.hasCard ?? false,
    needs: tool.needs,
    annotations: ANNOTATIONS[tool.hints],
    input: z.strictObject(tool.input),
    output: z.object(tool.output ?? {}),
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
  const { required: _, additionalProperties: __, properties, ...schema } = briefSchemaOf(output)
  const isNamed = Object.keys(properties ?? {}).length > 0
  return { ...schema, ...(isNamed ? { properties } : {}) } as ObjectSchema
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
