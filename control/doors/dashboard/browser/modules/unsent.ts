/** What a person wrote while the service was away: kept in this browser, and sent in its order when it is back. */
export interface Unsent {
  readonly action: string
  readonly fields: [name: string, value: string][]
}

/** `later`: too much was sent in a short time. */
export type SendingOutcome = 'sent' | 'refused' | 'later' | 'away'

export interface UnsentForms {
  add(form: Unsent): void
  /** Sends what is kept, until one does not arrive. */
  tryAgain(): Promise<void>
}

export function keepUnsent(
  key: string,
  send: (form: Unsent) => Promise<SendingOutcome>,
  { onChange, onRefused }: { onChange(left: number): void; onRefused(form: Unsent): void },
): UnsentForms {
  let isSending = false
  const read = (): Unsent[] => JSON.parse(localStorage.getItem(key) ?? '[]') as Unsent[]
  const write = (forms: readonly Unsent[]): void => {
    if (forms.length === 0) localStorage.removeItem(key)
    else localStorage.setItem(key, JSON.stringify(forms))
    onChange(forms.length)
  }
  if (read().length > 0) onChange(read().length)
  return {
    add: (form) => write([...read(), form]),
    async tryAgain() {
      // A second one would send the same again.
      if (isSending) return
      isSending = true
      try {
        for (let [first] = read(); first; [first] = read()) {
          const outcome = await send(first)
          if (outcome === 'away' || outcome === 'later') return
          write(read().slice(1))
          if (outcome === 'refused') onRefused(first)
        }
      } finally {
        isSending = false
      }
    },
  }
}
