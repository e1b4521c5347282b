/** Faults that no test can notice, because nothing differs that anybody could see. Each says why. */
export interface Equivalent {
  readonly file: string
  /** The line as it is written, trimmed. */
  readonly code: string
  /** As the report shows them. */
  readonly changes: readonly string[]
  readonly why: string
}

export const EQUIVALENTS: readonly Equivalent[] = []
