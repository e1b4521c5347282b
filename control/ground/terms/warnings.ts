/** How long before an end its owner hears of it. A warning comes half-way at the earliest, so that short periods have one too. */
export function leadsOf(warningsMs: readonly number[], periodMs: number): number[] {
  return [...new Set(warningsMs.map((lead) => Math.min(lead, periodMs / 2)))].toSorted((a, b) => b - a)
}
