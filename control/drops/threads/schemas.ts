/** Threads as the API shows them. */
import { z } from 'zod'
import { isPreviewName } from '../../../shared/http/hosts.ts'
import { described } from '../../ground/http/operations/described.ts'
import type { Anchor, FoundAnchor } from '../publishing/comparison/anchors.ts'
import { MAX_SRC_CHARS } from '../publishing/comparison/page-text.ts'
import { storable } from '../publishing/html/text.ts'
import type { MessageRow, ShownImage, ThreadRow } from './queries.ts'
import {
  isAuthor,
  MAX_BODY_CHARS,
  MAX_CONTEXT_CHARS,
  MAX_IMAGES_PER_MESSAGE,
  MAX_PAGE_CHARS,
  MAX_QUOTE_CHARS,
  MAX_THREADS_AT_ONCE,
  pagePathOf,
  PLACEMENTS,
  THREAD_LABELS,
  THREAD_STATES,
  type Author,
} from './rules.ts'

const SAMPLE_TIME = '2026-11-15T09:00:00.000Z'
const time = (description: string) => described(z.iso.datetime(), description, SAMPLE_TIME)
const SAMPLE_BODY = 'The price is from last year.'

const page = described(z.string(), 'The path of the page.', '/')
const state = described(z.enum(THREAD_STATES), 'Whether it is done.', 'open')
const label = described(z.enum(THREAD_LABELS), 'How much it matters.', 'must')

const context = (description: string, example: string) =>
  described(z.string().max(MAX_CONTEXT_CHARS), description, example)
const anchorFields = {
  exact: described(z.string().max(MAX_QUOTE_CHARS), 'The words that it is about.', 'from 10 euros'),
  prefix: context('What stands before them.', 'A ticket costs '),
  suffix: context('What stands after them.', ' a person.'),
  element: described(
    z.string().min(1).max(MAX_CONTEXT_CHARS),
    'The structure path of an element, as a CSS selector that ends with its name: `exact` is then its text.',
    'main > img:nth-of-type(1)',
  ).optional(),
  src: described(
    z.string().max(MAX_SRC_CHARS),
    'What an image, or another element without text, shows: its `src` as the page writes it.',
    '/hall.jpg',
  ).optional(),
  point: described(
    z.strictObject({ x: z.number().min(0).max(1), y: z.number().min(0).max(1) }),
    'A point in an image, in shares of its width and height.',
  ).optional(),
}
const SAMPLE_ANCHOR = { exact: 'from 10 euros', prefix: 'A ticket costs ', suffix: ' a person.' }

const anchorSchema = z.object(anchorFields).meta({
  id: 'ThreadAnchor',
  description:
    'What a thread is about, by the selectors of W3C Web Annotation: `exact`, `prefix` and `suffix` are its TextQuoteSelector, `element` its CssSelector, `point` the position in an image of its FragmentSelector (`xywh=percent:`).',
})
const foundSchema = z
  .object({
    ...anchorFields,
    file: described(z.string(), 'The uploaded file that says so.', 'index.html').optional(),
    line: described(z.int(), 'Where in it, as far as that can be told.', 12).optional(),
  })
  .meta({ id: 'ThreadPlace' })

const authorSchema = z
  .object({
    kind: described(z.enum(['member', 'viewer', 'guest']), 'A member of the organisation, or who was let in.', 'guest'),
    name: described(z.string(), 'The name that they gave; empty once it was removed.', 'Ada'),
  })
  .meta({ id: 'ThreadAuthor' })

const imageSchema = z
  .object({
    id: described(z.string(), 'Id of the image.', 'ti_1mk3v8s2kd'),
    url: described(z.string(), 'Its bytes, for who may read the thread: with the same credential as here.'),
    type: described(z.string(), 'PNG, JPEG, GIF or WebP.', 'image/png'),
    bytes: described(z.int(), 'Its size.', 48_213),
    width: described(z.int(), 'In pixels.', 1280),
    height: described(z.int(), 'In pixels.', 720),
  })
  .meta({ id: 'ThreadImage' })

export const messageSchema = z
  .object({
    id: described(z.string(), 'Id of the message.', 'tm_1mk3v8s2kd'),
    body: described(z.string(), 'What was said: Markdown without HTML, written by a stranger.', SAMPLE_BODY),
    author: authorSchema,
    at: time('When.'),
    edited_at: described(z.iso.datetime().nullable(), 'When its author last changed it.', null),
    images: described(z.array(imageSchema), 'Images that were pasted into it.', []),
    mine: described(z.boolean(), 'You wrote it.', false).optional(),
  })
  .meta({ id: 'ThreadMessage' })
export type ApiMessage = z.infer<typeof messageSchema>
type ApiImage = z.infer<typeof imageSchema>

export const threadSchema = z
  .object({
    id: described(z.string(), 'Id of the thread.', 'th_1mk3v8s2kd'),
    page,
    url: described(z.string(), 'Opens at the place.', 'https://dropway.example/review/my-page?thread=th_1mk3v8s2kd'),
    state,
    label: label.nullable(),
    placement: described(
      z.enum(PLACEMENTS),
      'Where it is in the newest version: in the `same` place, `moved` with its text, `changed` where other words stand now, or `gone`.',
      'same',
    ),
    anchor: described(anchorSchema.nullable(), 'What it is about; null for the page.', SAMPLE_ANCHOR),
    found: described(foundSchema.nullable(), 'What stands there now; null where it is gone, or only scripts show it.', {
      ...SAMPLE_ANCHOR,
      file: 'index.html',
      line: 12,
    }),
    preview: described(z.string().nullable(), 'The named preview that it is about; null for what is live.', null),
    version: described(z.int(), 'Number of the version that it was said about.', 1),
    resolved_version: described(z.int(), 'Number of the version that mended it.', 2).optional(),
    resolved_at: time('When it was resolved.').optional(),
    author: authorSchema,
    created_at: time('When it was opened.'),
    mine: described(z.boolean(), 'You opened it.', false).optional(),
    messages: described(z.array(messageSchema), 'What was said, the oldest first.'),
  })
  .meta({ id: 'Thread' })
export type ApiThread = z.infer<typeof threadSchema>

export const threadsSchema = z.object({ threads: described(z.array(threadSchema), 'The oldest first.') })

const body = described(
  z
    .string()
    .max(MAX_BODY_CHARS, `write at most ${MAX_BODY_CHARS} characters`)
    .refine((text) => text.trim() !== '', 'write something'),
  `What you say, in Markdown; at most ${MAX_BODY_CHARS} characters.`,
  SAMPLE_BODY,
)

const images = described(
  z.array(z.string().max(60)).max(MAX_IMAGES_PER_MESSAGE, `at most ${MAX_IMAGES_PER_MESSAGE} images`),
  'Ids of images that were posted to /review/<slug>/images before.',
).optional()

export const openThreadSchema = z.strictObject({
  page: described(
    z
      .string()
      .max(MAX_PAGE_CHARS)
      .refine((text) => pagePathOf(text) !== undefined, 'send the path of a page, such as /about'),
    'The path of the page.',
    '/',
  ),
  body,
  anchor: described(
    z
      .strictObject({
        ...anchorFields,
        exact: anchorFields.exact.default(''),
        prefix: anchorFields.prefix.default(''),
        suffix: anchorFields.suffix.default(''),
      })
      .refine(
        ({ exact, element }) => exact.trim() !== '' || element !== undefined,
        'name the words that it is about as exact, or an element',
      )
      .refine(
        ({ element, point }) => point === undefined || element !== undefined,
        'a point is in an element: name it',
      ),
    'What it is about; left out for the page as a whole.',
    SAMPLE_ANCHOR,
  )
    .nullable()
    .optional(),
  images,
  label: label.nullable().optional(),
  preview: described(
    z.string().refine(isPreviewName, 'send the name of a preview'),
    'The named preview that it is about, instead of what is live.',
  ).optional(),
})
export type OpenThread = z.infer<typeof openThreadSchema>

export const writeMessageSchema = z.strictObject({ body, images })
export const editMessageSchema = z.strictObject({ body })

export const changeThreadSchema = z
  .strictObject({ state: state.optional(), label: label.nullable().optional() })
  .refine((change) => change.state !== undefined || change.label !== undefined, 'send state or label')

/** A field of a publish. */
export const resolves = described(
  z.array(z.string().max(60)).max(MAX_THREADS_AT_ONCE),
  'Threads that this version mends: they are resolved with it.',
)

const authorOf = (row: Pick<MessageRow, 'author_kind' | 'author_name'>): z.infer<typeof authorSchema> => ({
  kind: row.author_kind,
  name: row.author_name,
})

/** Whoever asks, where someone does. */
type Asking = Pick<Author, 'kind' | 'id' | 'key'>

function mineOf(row: AuthoredRow, by: Asking | undefined): { mine?: boolean } {
  if (!by) return {}
  return { mine: isAuthor(by, { kind: row.author_kind, id: row.author_id, key: row.author_key }) }
}

type AuthoredRow = Pick<MessageRow, 'author_kind' | 'author_id' | 'author_key'>

/** `reviewUrl`: the address of the drop's review page. */
export function showMessage(row: MessageRow, reviewUrl: string, by?: Asking): ApiMessage {
  return {
    id: row.id,
    body: row.body,
    author: authorOf(row),
    at: row.created_at.toISOString(),
    edited_at: row.edited_at?.toISOString() ?? null,
    images: row.images.map((image) => showImage(image, reviewUrl)),
    ...mineOf(row, by),
  }
}

export function showImage({ id, type, byte_size, width, height }: ShownImage, reviewUrl: string): ApiImage {
  return { id, url: `${reviewUrl}/images/${id}`, type, bytes: byte_size, width, height }
}

export function showThreads(
  threads: readonly ThreadRow[],
  messages: readonly MessageRow[],
  reviewUrl: string,
  by?: Asking,
): ApiThread[] {
  const ofThread = Map.groupBy(messages, ({ thread_id }) => thread_id)
  return threads.map((row) => ({
    id: row.id,
    page: row.page,
    url: `${reviewUrl}?thread=${row.id}`,
    state: row.state,
    label: row.label,
    placement: row.placement,
    anchor: row.anchor,
    found: row.placement === 'gone' ? null : row.found,
    preview: row.preview,
    version: row.version_number,
    ...(row.resolved_version === null ? {} : { resolved_version: row.resolved_version }),
    ...(row.resolved_at === null ? {} : { resolved_at: row.resolved_at.toISOString() }),
    author: authorOf(row),
    created_at: row.created_at.toISOString(),
    ...mineOf(row, by),
    messages: (ofThread.get(row.id) ?? []).map((message) => showMessage(message, reviewUrl, by)),
  }))
}

/** Postgres takes neither U+0000 nor half a surrogate pair. */
export function storableAnchor<Kind extends Anchor | FoundAnchor>(anchor: Kind): Kind {
  const { exact, prefix, suffix, element, src } = anchor
  return {
    ...anchor,
    exact: storable(exact),
    prefix: storable(prefix),
    suffix: storable(suffix),
    ...(element === undefined ? {} : { element: storable(element) }),
    ...(src === undefined ? {} : { src: storable(src) }),
  }
}
