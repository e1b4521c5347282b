import { WithHeaders } from '../../ground/http/api.ts'
import type { Propagated } from './sites.ts'

/** `dropway-propagation: pending` tells that some edge may still answer with the state before. */
export function propagationHeaders(pending: boolean): Record<string, string> {
  return pending ? { 'dropway-propagation': 'pending' } : {}
}

export function reply<Value>({ value, pending }: Propagated<Value>): Value | WithHeaders<Value> {
  return pending ? new WithHeaders(value, propagationHeaders(pending)) : value
}
