/** Contract 3b: messages on the change log. One entry names one thing that changed and carries its new value. */
import { z } from 'zod'
import { pairs } from './pairs.ts'

export const STREAM_FORMAT = 1

export const streamMessageSchema = z.discriminatedUnion('kind', [
  /** `value`: encoded route record. */
  z.object({ v: z.literal(STREAM_FORMAT), kind: z.literal('route'), name: z.string(), value: z.string() }),
  /** `value`: sealed certificate bundle; empty string removes it. */
  z.object({ v: z.literal(STREAM_FORMAT), kind: z.literal('certificate'), name: z.string(), value: z.string() }),
  /** Which custom domains want a certificate: `value` is an encoded `DomainWish`. The certs plane acts on it. */
  z.object({ v: z.literal(STREAM_FORMAT), kind: z.literal('domain'), name: z.string(), value: z.string() }),
  /** People said something about the drop at this host; `value` is empty. Nothing is kept of it. */
  z.object({ v: z.literal(STREAM_FORMAT), kind: z.literal('threads'), name: z.string(), value: z.string() }),
  /** `name`: token, `value`: key authorization; empty when the challenge is over. */
  z.object({ v: z.literal(STREAM_FORMAT), kind: z.literal('challenge'), name: z.string(), value: z.string() }),
])

export type StreamMessage = z.infer<typeof streamMessageSchema>

/** Field list for XADD. */
export function encodeStreamMessage(message: Omit<StreamMessage, 'v'>): string[] {
  return ['v', String(STREAM_FORMAT), 'kind', message.kind, 'name', message.name, 'value', message.value]
}

export function decodeStreamMessage(fields: readonly string[]): StreamMessage {
  const entries: Record<string, unknown> = Object.create(null)
  for (const [name, value] of pairs(fields)) entries[name] = value
  return streamMessageSchema.parse({ ...entries, v: Number(entries['v']) })
}

const domainWishSchema = z.object({
  wanted: z.boolean(),
  /** The owner of the domain, so that one organisation's orders at the CA are counted; older messages do not say it. */
  organisation: z.string().optional(),
})

export type DomainWish = z.infer<typeof domainWishSchema>

export function encodeDomainWish(wish: DomainWish): string {
  return JSON.stringify(wish)
}

/** Reads the value of a `domain` message. Throws on anything else. */
export function decodeDomainWish(value: string): DomainWish {
  return domainWishSchema.parse(JSON.parse(value))
}

export const START_OF_LOG = '0-0'

/** Stream ids (`<ms>-<seq>`) in order: negative when `a` is older. */
export function compareStreamIds(a: string, b: string): number {
  const [aMs = '0', aSeq = '0'] = a.split('-')
  const [bMs = '0', bSeq = '0'] = b.split('-')
  return Number(aMs) - Number(bMs) || Number(aSeq) - Number(bSeq)
}

/** The first id behind this one, where the next page begins. */
export function nextStreamId(id: string): string {
  const [ms = '0', seq = '0'] = id.split('-')
  return `${ms}-${Number(seq) + 1}`
}
