/** What a person wrote while the service was away: kept in this browser, and sent in its order when it is back. */
export interface Unsent {
  readonly action: string
  readonly fields: [name: string, value: string][]
}

export interface UnsentForms {
  add(form: Unsent): void
  /** Sends what is kept, until one does not arrive. */
  tryAgain(): Promise<void>
}

export function keepUnsent(
  key: string,
  send: (form: Unsent) => Promise<'sent' | 'refused' | 'away'>,
  onChange: (left: number) => void,
): UnsentForms {
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
      for (;;) {
        const [first, ...others] = read()
        if (!first || (await send(first)) === 'away') return
        write(others)
      }
    },
  }
}
