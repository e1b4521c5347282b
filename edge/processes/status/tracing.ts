/** Traces of the edge: one span for each request, where they are switched on; nothing is done for one where they are not. */
import { withoutToken } from '../../../shared/contracts/visit-desk.ts'
import type { Span, Tracer } from '../../../shared/running/traces.ts'
import { before } from '../../../shared/values/before.ts'
import type { Exchange } from '../../context.ts'
import type { Answers } from '../answers.ts'

export interface Tracing {
  /** Begins the span of a request, then hands it on. */
  wrap(pipeline: (exchange: Exchange) => void): (exchange: Exchange) => void
  answered(exchange: Exchange, status: number): void
  /** For control, which goes on with the trace. */
  traceparent(exchange: Exchange): string | undefined
  /** The answers, which note the id that a page of an error shows. */
  noteErrors(answers: Answers): Answers
}

export function createTracing(tracer: Tracer): Tracing {
  const spans = new WeakMap<Exchange, Span>()
  return {
    wrap: (pipeline) => (exchange) => {
      // A visitor's own trace is not ours to continue.
      const span = tracer.begin(`${exchange.method} edge`)
      if (span) spans.set(exchange, span)
      pipeline(exchange)
    },
    answered(exchange, status) {
      const span = spans.get(exchange)
      if (!span) return
      span.note({
        'http.request.method': exchange.method,
        'http.response.status_code': status,
        'server.address': exchange.host,
        // Queries hold tokens and search terms, and links for guests a secret: they do not belong here.
        'url.path': withoutToken(before(exchange.target, '?')).slice(0, 500),
      })
      span.end(status >= 500)
      spans.delete(exchange)
    },
    traceparent: (exchange) => spans.get(exchange)?.traceparent,
    noteErrors: (answers) => ({
      ...answers,
      error(exchange, status, about = {}) {
        spans.get(exchange)?.note({ 'dropway.error_id': about.id })
        answers.error(exchange, status, about)
      },
    }),
  }
}
