/** hyper-express's request as the Request that routes know. */
import type { BlockList } from 'node:net'
import type { Readable } from 'node:stream'
import type { Request as ServerRequest, Response as ServerResponse } from 'hyper-express'
import { errors } from '../../../../shared/contracts/errors.ts'
import { MAX_FORM_BYTES, MAX_FORM_PAIRS, parseForm, parseQuery } from '../../../../shared/http/form.ts'
import { callerIp, limitKeyOfIp } from '../../../../shared/http/ip.ts'
import { MAX_JSON_BYTES } from '../../../../shared/contracts/limits.ts'
import { hasEscapes, requireFields, requireTexts } from '../../../../shared/values/text.ts'
import { bodyStream, CallerLeft, readWhole, type Pace } from '../bodies/body.ts'
import type { HeldBodies, HeldBody } from '../bodies/held-bodies.ts'
import { requireJsonShape } from '../bodies/json-shape.ts'
import { walkMultipart } from '../bodies/multipart.ts'
import type { MultipartOptions, Part, Request } from '../route.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** What all requests of a server have in common. */
export interface Surroundings {
  readonly trusted: BlockList
  readonly heldBodies: HeldBodies
  readonly pace: Pace
  onBodyBytes(count: number): void
}

export class IncomingRequest implements Request {
  readonly method: string
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  readonly #request: ServerRequest
  readonly #response: ServerResponse
  readonly #surroundings: Surroundings
  #query: URLSearchParams | undefined
  #cookies: ReadonlyMap<string, string> | undefined
  #signal: AbortSignal | undefined
  #body: Readable | undefined
  #held: HeldBody | undefined

  constructor(request: ServerRequest, response: ServerResponse, surroundings: Surroundings, pattern: string) {
    this.#request = request
    this.#response = response
    this.#surroundings = surroundings
    this.method = request.method
    this.path = request.path
    this.params = decodeParams(request.path_parameters, request.path, pattern)
    requireTexts(this.params)
    // The query is read when it is asked for, and an error page may ask again: it is looked at here.
    if (request.path_query.includes('%00')) throw errors.noText('')
  }

  get query(): URLSearchParams {
    return (this.#query ??= parseQuery(this.#request.path_query))
  }

  header(name: string): string | undefined {
    return this.#request.headers[name.toLowerCase()]
  }

  cookie(name: string): string | undefined {
    return (this.#cookies ??= parseCookies(this.header('cookie'))).get(name)
  }

  get ip(): string {
    return callerIp(this.#request.ip, this.header('x-forwarded-for'), this.#surroundings.trusted)
  }

  /** Who counts as one caller in shares and limits. */
  get network(): string {
    return limitKeyOfIp(this.ip)
  }

  get signal(): AbortSignal {
    return (this.#signal ??= signalOf(this.#response))
  }

  async json(maxBytes = MAX_JSON_BYTES): Promise<unknown> {
    const type = this.header('content-type') ?? ''
    if (!/^application\/json\s*(?:;|$)/i.test(type)) throw errors.unsupportedMediaType('application/json')
    const bytes = await this.bytes(maxBytes)
    requireJsonShape(bytes)
    const text = decodeUtf8(bytes)
    const value = parseJson(text)
    if (hasEscapes(text)) requireTexts(value)
    return value
  }

  async form(maxBytes = MAX_FORM_BYTES): Promise<URLSearchParams> {
    const type = this.header('content-type') ?? ''
    if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) {
      throw errors.unsupportedMediaType('application/x-www-form-urlencoded')
    }
    const form = parseForm(await this.text(maxBytes))
    if (form === 'too many fields') throw errors.tooManyFields(MAX_FORM_PAIRS)
    if (form === 'not UTF-8') throw errors.notUtf8('form')
    requireFields(form)
    return form
  }

  async text(maxBytes: number): Promise<string> {
    return decodeUtf8(await this.bytes(maxBytes))
  }

  bytes(maxBytes: number): Promise<Buffer> {
    return readWhole(this.stream(), this.header('content-length'), maxBytes, (size) => this.hold(size))
  }

  hold(bytes: number): void {
    this.#held ??= this.#surroundings.heldBodies.open(this.network, {
      isOver: () => this.stream().readableEnded,
      stop: (reason) => void this.stream().destroy(reason),
    })
    this.#held.add(bytes)
  }

  /** The request is answered: its body needs no memory any more. */
  end(): void {
    this.#held?.release()
  }

  stream(): Readable {
    return (this.#body ??= this.#openStream())
  }

  #openStream(): Readable {
    const body = bodyStream(this.#request, this.#surroundings.onBodyBytes, this.#surroundings.pace)
    // Who left before anyone asked for the body sends no more of it, and nothing else says so.
    if (this.#response.completed) body.on('error', () => {}).destroy(new CallerLeft())
    return body
  }

  multipart(onPart: (part: Part) => Promise<void>, options?: MultipartOptions): Promise<void> {
    return walkMultipart(this.stream(), this.#request.headers, onPart, options)
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw errors.invalidJson()
  }
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw errors.notUtf8('body')
  }
}

function signalOf(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  if (response.completed) controller.abort(new CallerLeft())
  else response.once('abort', () => controller.abort(new CallerLeft()))
  return controller.signal
}

/** `*` holds what a final wildcard matched. */
function decodeParams(
  raw: Readonly<Record<string, string>>,
  path: string,
  pattern: string,
): Readonly<Record<string, string>> {
  const params: Record<string, string> = Object.create(null)
  try {
    for (const [name, text] of Object.entries(raw)) params[name] = decodeURIComponent(text)
    if (pattern.endsWith('/*'))
      params['*'] = decodeURIComponent(
        path
          .split('/')
          .slice(pattern.split('/').length - 1)
          .join('/'),
      )
  } catch {
    throw errors.invalidRequest('The address holds a malformed percent-encoding.')
  }
  return params
}

export function parseCookies(header: string | undefined): ReadonlyMap<string, string> {
  const cookies = new Map<string, string>()
  for (const pair of header?.split(';') ?? []) {
    const mark = pair.indexOf('=')
    if (mark < 0) continue
    const name = pair.slice(0, mark).trim()
    // RFC 6265 §5.4: the more specific cookie comes first.
    if (!cookies.has(name)) cookies.set(name, unquote(pair.slice(mark + 1).trim()))
  }
  return cookies
}

function unquote(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
}
