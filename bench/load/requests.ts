/** What every request says, and which page it asks for. */
import { createZipf } from '../zipf.ts'
import type { Page } from './target.ts'

/** The name is not a browser's: the edge counts no view for it. Answers come compressed, as browsers ask for them. */
export const HEADERS: Readonly<Record<string, string>> = {
  'user-agent': 'dropway-bench-load',
  'accept-encoding': 'br, gzip',
}

/** Draws pages by Zipf's law; the same for the same seed. */
export function createDraw(pages: readonly Page[], seed: number): () => Page {
  const [first] = pages
  if (first === undefined) throw new Error('There is nothing to ask for.')
  if (pages.length === 1) return () => first
  const rank = createZipf(pages.length, createRandom(seed))
  return () => pages[rank()] ?? first
}

/** mulberry32. */
function createRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
