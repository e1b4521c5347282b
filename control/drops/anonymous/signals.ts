import { isCrossOrigin } from '../../people/access/same-origin.ts'
import type { Request } from '../../ground/http/route.ts'
import type { Publisher } from './anonymous.ts'

/** What a request says about who publishes. Our page sends what it knows as headers; tools send none of them. */
export function signalsOf(request: Pick<Request, 'header'>, baseUrl: string): Publisher['signals'] {
  return {
    honeypot: request.header('dropway-website'),
    started: request.header('dropway-form-started'),
    proof: request.header('dropway-proof'),
    isBrowser: isCrossOrigin(request, baseUrl),
  }
}
