/** How long before an end its owner hears of it. A warning comes half-way at the earliest, so that short periods have one too. */
export function leadOf(warningMs: number, periodMs: number): number {
  return Math.min(warningMs, periodMs / 2)
}

/** The same of several warnings, the earliest first; two that would come together are one. */
export function leadsOf(warningsMs: readonly number[], periodMs: number): number[] {
  return [...new Set(warningsMs.map((warningMs) => leadOf(warningMs, periodMs)))].toSorted((a, b) => b - a)
}
