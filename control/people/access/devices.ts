/** Enough to recognise one's own machine, `Firefox on Linux`; the raw text is no help, and changes with every update. */
export function deviceOf(userAgent: string): string {
  const browser = /Edg\//.test(userAgent)
    ? 'Edge'
    : /Firefox\//.test(userAgent)
      ? 'Firefox'
      : /Chrom(?:e|ium)\//.test(userAgent)
        ? 'Chrome'
        : /Safari\//.test(userAgent)
          ? 'Safari'
          : 'A browser'
  const system = ['Android', 'iPhone', 'iPad', 'Windows', 'Mac OS', 'Linux'].find((name) => userAgent.includes(name))
  return system === undefined ? browser : `${browser} on ${system === 'Mac OS' ? 'macOS' : system}`
}
