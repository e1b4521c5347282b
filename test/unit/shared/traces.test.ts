import { expect, test } from 'vitest'
import { isSampled, parseTraceparent, readTraceSettings } from '../../../shared/running/traces.ts'
import { EnvReader, type Env } from '../../../shared/settings/env.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

test.each([
  [`00-${TRACE}-${SPAN}-01`, { traceId: TRACE, spanId: SPAN }],
  [`00-${TRACE}-${SPAN}-00`, { traceId: TRACE, spanId: SPAN }],
  [`01-${TRACE}-${SPAN}-01`, undefined],
  [`00-${'0'.repeat(32)}-${SPAN}-01`, undefined],
  [`00-${TRACE}-${'0'.repeat(16)}-01`, undefined],
  [`00-${TRACE.toUpperCase()}-${SPAN}-01`, undefined],
  [`00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`, undefined],
  ['', undefined],
  [undefined, undefined],
])('traceparent %s', (text, parsed) => {
  expect(parseTraceparent(text)).toEqual(parsed)
})

test('a share of traces is kept, the same ones on every plane', () => {
  const ids = Array.from({ length: 1000 }, (_, index) => (index * 4_294_967).toString(16).padStart(32, '0'))
  expect(ids.filter((id) => isSampled(id, 0))).toHaveLength(0)
  expect(ids.filter((id) => isSampled(id, 1))).toHaveLength(1000)
  expect(ids.filter((id) => isSampled(id, 0.25)).length).toBeCloseTo(250, -1)
})

test.each([
  [{}, undefined],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/', OTEL_TRACES_SAMPLER_ARG: '0.1' },
    { url: 'http://collector:4318/v1/traces', headers: {}, sample: 0.1 },
  ],
  [
    { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://t.example/in', OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20b,y=2' },
    { url: 'https://t.example/in', headers: { 'x-key': 'a b', y: '2' }, sample: 1 },
  ],
] as [Env, unknown][])('settings %o', (env, settings) => {
  expect(readTraceSettings(new EnvReader(env))).toEqual(settings)
})

test.each([
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /OTEL_EXPORTER_OTLP_ENDPOINT must begin with http/],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'secret' }, /OTEL_EXPORTER_OTLP_HEADERS must be name=value/],
  [{ OTEL_TRACES_SAMPLER_ARG: '2' }, /OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1/],
] as [Env, RegExp][])('settings %o are refused', (env, words) => {
  const reader = new EnvReader(env)
  readTraceSettings(reader)
  expect(() => reader.finish({})).toThrow(words)
})
