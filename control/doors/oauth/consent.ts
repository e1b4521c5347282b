/** The pages that authorization needs; the dashboard shows them. */
import type { Reply, Request } from '../../ground/http/route.ts'
import type { ReturnPlace } from './rules.ts'

/** A program asks for access: who it is, and where the answer goes. */
export interface ConsentRequest {
  readonly clientName: string
  /** The host whose own document describes the program; undefined when it only named itself. */
  readonly verifiedHost: string | undefined
  /** Where the browser is sent back to, whole: a scheme before a familiar name is not that name. */
  readonly redirectUri: string
  readonly returnsTo: ReturnPlace
  /** Scheme for the form-action of the page, e.g. `https:` or `cursor:`. */
  readonly redirectSource: string
  readonly organisation: string
  readonly email: string
  readonly scopes: readonly string[]
  /** Where the form goes, with whatever the server needs to find the request again. */
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
}

export interface ConsentPages {
  consent(request: Request, asked: ConsentRequest): Promise<Reply>
  /** For a program that nobody registered: says so, and `returnTo` tells the program when the person presses for it. */
  unknownProgram(request: Request, told: { readonly words: string; readonly returnTo: string }): Promise<Reply>
  /** In front of a decision that needs a verified address: leads on to it by itself. */
  verifyFirst(request: Request, email: string): Promise<Reply>
  /** In front of a decision that asks for the second factor: leads to the proof, and from there to `page`. */
  proveFirst(page: string): Reply
}
