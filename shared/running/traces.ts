/**
 * Traces of requests for an OpenTelemetry collector (OTLP over HTTP with JSON, W3C trace context). Off unless an
 * endpoint is set. One span for each request and plane; those of one request share a trace, and one that failed carries
 * the id that its error page shows. Spans wait in memory, a bounded number of them: a collector that is away costs
 * spans, never a request.
 */
import { randomBytes } from 'node:crypto'
import type { EnvReader } from '../settings/env.ts'
import { SECOND_MS } from './clock.ts'

const SEND_EVERY_MS = 2 * SECOND_MS
const SEND_TIMEOUT_MS = 10 * SECOND_MS
const MAX_SPANS_AT_ONCE = 512
const MAX_WAITING_SPANS = 4096
/** OTLP's numbers: a span of a server; a status of an error. */
const KIND_SERVER = 2
const STATUS_ERROR = 2

export interface TraceSettings {
  /** Where spans are posted to. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Share of traces that is kept. */
  readonly sample: number
}

/** The names of the OpenTelemetry specification, so that operators know them. Undefined: off. */
export function readTraceSettings(env: EnvReader): TraceSettings | undefined {
  const whole = env.url('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', ['http', 'https'])
  const base = env.url('OTEL_EXPORTER_OTLP_ENDPOINT', ['http', 'https'])
  const url = whole ?? (base === undefined ? undefined : `${base.replace(/\/$/, '')}/v1/traces`)
  const sample = env.ratio('OTEL_TRACES_SAMPLER_ARG', 1)
  const headers = Object.fromEntries(env.list('OTEL_EXPORTER_OTLP_HEADERS').map((entry) => headerOf(env, entry)))
  return url === undefined ? undefined : { url, headers, sample }
}

function headerOf(env: EnvReader, entry: string): [string, string] {
  const equals = entry.indexOf('=')
  // The message does not repeat it: it may hold a key.
  if (equals < 1) return env.problem('OTEL_EXPORTER_OTLP_HEADERS must be name=value, separated by commas', ['x', ''])
  return [entry.slice(0, equals).trim(), decodeURIComponent(entry.slice(equals + 1).trim())]
}

export interface Span {
  /** For whoever goes on with the request: `00-<trace>-<span>-01`. */
  readonly traceparent: string
  note(attributes: Readonly<Record<string, string | number | undefined>>): void
  end(isError: boolean): void
}

export interface Tracer {
  /** Undefined for a request whose trace is not kept. `parent` is the `traceparent` that came with it. */
  begin(name: string, parent?: string): Span | undefined
  /** Sends what waits, once. */
  stop(): Promise<void>
}

interface EndedSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, string | number>>
  readonly isError: boolean
}

export function startTracer(plane: string, settings: TraceSettings | undefined): Tracer | undefined {
  if (settings === undefined) return undefined
  const waiting: EndedSpan[] = []

  async function send(): Promise<void> {
    const batch = waiting.splice(0, MAX_SPANS_AT_ONCE)
    if (batch.length === 0) return
    const answer = await fetch(settings!.url, {
      method: 'POST',
      headers: { ...settings!.headers, 'content-type': 'application/json' },
      body: JSON.stringify(encodeSpans(plane, batch)),
      signal: AbortSignal.timeout(SEND_TIMEOUT_MS),
    })
    await answer.body?.cancel()
  }

  // What a collector does not take is lost: it says so itself, and nothing here depends on it.
  const timer = setInterval(() => void send().catch(() => {}), SEND_EVERY_MS)
  timer.unref()
  return {
    begin(name, parent) {
      const known = parseTraceparent(parent)
      const traceId = known?.traceId ?? randomBytes(16).toString('hex')
      if (!isSampled(traceId, settings.sample)) return undefined
      const spanId = randomBytes(8).toString('hex')
      const startMs = wallClockMs()
      const attributes: Record<string, string | number> = {}
      return {
        traceparent: `00-${traceId}-${spanId}-01`,
        note(more) {
          for (const [key, value] of Object.entries(more)) if (value !== undefined) attributes[key] = value
        },
        end(isError) {
          if (waiting.length >= MAX_WAITING_SPANS) return
          const parentSpanId = known?.spanId
          waiting.push({ name, traceId, spanId, parentSpanId, startMs, endMs: wallClockMs(), attributes, isError })
        },
      }
    },
    async stop() {
      clearInterval(timer)
      await send().catch(() => {})
    },
  }
}

/** With fractions of a millisecond. */
function wallClockMs(): number {
  return performance.timeOrigin + performance.now()
}

/** W3C trace context §3.2; undefined for anything else. Whether to keep it is our own decision. */
export function parseTraceparent(text: string | undefined): { traceId: string; spanId: string } | undefined {
  const [, traceId = '', spanId = ''] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(text ?? '') ?? []
  return traceId === '' || /^0+$/.test(traceId) || /^0+$/.test(spanId) ? undefined : { traceId, spanId }
}

/** The same for every plane that sees the trace, whoever began it. */
export function isSampled(traceId: string, sample: number): boolean {
  return Number.parseInt(traceId.slice(-8), 16) < sample * 2 ** 32
}

function encodeSpans(plane: string, spans: readonly EndedSpan[]): object {
  return {
    resourceSpans: [
      {
        resource: { attributes: encodeAttributes({ 'service.name': plane }) },
        scopeSpans: [{ scope: { name: 'dropway' }, spans: spans.map(encodeSpan) }],
      },
    ],
  }
}

function encodeSpan({ name, traceId, spanId, parentSpanId, startMs, endMs, attributes, isError }: EndedSpan): object {
  return {
    traceId,
    spanId,
    ...(parentSpanId !== undefined && { parentSpanId }),
    name,
    kind: KIND_SERVER,
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(endMs),
    attributes: encodeAttributes(attributes),
    ...(isError && { status: { code: STATUS_ERROR } }),
  }
}

/** A number of JSON cannot hold nanoseconds since 1970. */
function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1000)) * 1000n)
}

function encodeAttributes(attributes: Readonly<Record<string, string | number>>): object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }))
}
