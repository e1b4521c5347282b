/** What the thread for machine-readable answers is asked, and what it gives. */
import type { ListedPage } from './llms-txt.ts'

export type MachineJob =
  /** A page that becomes Markdown. `type`: its content-type, which may name its charset. */
  | { readonly kind: 'page'; readonly bytes: Uint8Array; readonly type: string; readonly address: string }
  /** Markdown as it was uploaded. */
  | { readonly kind: 'source'; readonly bytes: Uint8Array }
  | {
      readonly kind: 'list'
      readonly host: string
      readonly pages: readonly (Omit<ListedPage, 'head'> & { readonly head: Uint8Array })[]
      /** How many pages there are beside these. */
      readonly left: number
    }

export interface MadeText {
  readonly bytes: Uint8Array
  /** SHA-256 of the bytes, in hex. */
  readonly hash: string
  readonly tokens: number
}
