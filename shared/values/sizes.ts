/** Sizes as people read them: in pages, their scripts, the pages around documents, and the client. */

const UNITS = [
  [1e9, 'GB'],
  [1e6, 'MB'],
  [1e3, 'kB'],
] as const

/** 1,200,000 → `1.2 MB`. */
export function bytesInWords(bytes: number): string {
  if (!Number.isFinite(bytes)) return 'no limit'
  const [size, unit] = UNITS.find(([least]) => bytes >= least) ?? [1, 'B']
  return `${trimmed(bytes / size)} ${unit}`
}

function trimmed(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Math.round(value * 10) / 10)
}
