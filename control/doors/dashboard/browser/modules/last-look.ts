/** When this person last looked at a page that is reviewed, and at which version. It is kept in their browser alone. */
interface Look {
  readonly version: number
  /** ISO 8601. */
  readonly at: string
}

export interface LastLook {
  /** The version that was seen last; undefined for who is here for the first time. */
  readonly version: number | undefined
  /** Whether something was said after that. */
  isNew(at: string): boolean
}

/** `key` names the drop and the preview; `current` is the version on the screen when the person leaves. */
export function followLooks(key: string, current: () => number, onReturn: () => void): () => LastLook {
  const read = (): Look | undefined => {
    try {
      return JSON.parse(localStorage.getItem(key) ?? 'null') as Look | undefined
    } catch {
      return undefined
    }
  }
  let last = read()
  // A first visit begins now: what comes while the person is here is new to them.
  const began = new Date().toISOString()
  const leave = (): void => {
    const look: Look = { version: current(), at: new Date().toISOString() }
    localStorage.setItem(key, JSON.stringify(look))
  }
  addEventListener('pagehide', leave)
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return leave()
    last = read()
    onReturn()
  })
  return () => ({ version: last?.version, isNew: (at) => at > (last?.at ?? began) })
}
