/** The date of an answer (RFC 9110 §6.6.1), written once per second. */
export interface HttpDate {
  /** The same text for as long as it is right. */
  text(): string
}

export function createHttpDate(now: () => number = Date.now): HttpDate {
  let second = -1
  let text = ''
  return {
    text() {
      const current = Math.floor(now() / 1000)
      if (current !== second) {
        second = current
        text = new Date(current * 1000).toUTCString()
      }
      return text
    },
  }
}
