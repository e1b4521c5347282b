/** Two lists of the same length side by side: what was asked for, and what came of it. */
export function sideBySide<One, Other>(ones: readonly One[], others: readonly Other[]): [One, Other][] {
  if (ones.length !== others.length) throw new Error(`${ones.length} and ${others.length} do not go together`)
  return ones.map((one, index) => [one, others[index] as Other])
}
