/** Small drawings for the edge's pages: a drop over still water, and what has become of it. */
import { raw } from '../../shared/pages/html.ts'
import type { Html } from '../../shared/pages/html.ts'

export type Drawing = 'outline' | 'ripples' | 'clock' | 'letter' | 'paused' | 'keyhole' | 'broken'

const DROP = 'M68 10c13 16 22 27 22 39a22 22 0 0 1-44 0c0-12 9-23 22-39Z'
const SOLID = `<path d="${DROP}" fill="currentColor" fill-opacity=".12" stroke="currentColor" stroke-width="2.5"/>`

const DRAWINGS: Readonly<Record<Drawing, string>> = {
  outline: `<path d="${DROP}" stroke="currentColor" stroke-width="2.5" stroke-dasharray="1 6.5"/>`,
  // The drop has gone under: only a wider ring and a splash are left.
  ripples:
    '<path d="M68 62v-9M54 64l-6-7M82 64l6-7" stroke="currentColor" stroke-width="2.5"/><ellipse cx="68" cy="84" rx="8" ry="2" fill="currentColor"/>',
  clock: `${SOLID}<path d="M68 36v13l8 5" stroke="currentColor" stroke-width="2.5"/>`,
  letter: `${SOLID}<path d="M57 42h22v15H57zM57 43l11 8 11-8" stroke="currentColor" stroke-width="2.5"/>`,
  paused: `${SOLID}<path d="M63 41v16M73 41v16" stroke="currentColor" stroke-width="3.5"/>`,
  keyhole: `${SOLID}<path d="M68 50v9" stroke="currentColor" stroke-width="3.5"/><circle cx="68" cy="45" r="5" fill="currentColor"/>`,
  broken: `${SOLID}<path d="m67 24-5 11 9 6-7 10 6 6-3 8" stroke="currentColor" stroke-width="2.5"/>`,
}

/** The same water under every one of them. */
const WATER =
  '<g stroke="currentColor" stroke-width="2"><ellipse cx="68" cy="84" rx="22" ry="4.5" opacity=".75"/><ellipse cx="68" cy="84" rx="43" ry="8.5" opacity=".4"/><ellipse cx="68" cy="84" rx="64" ry="12.5" opacity=".18"/></g>'

export function drawing(name: Drawing): Html {
  return raw(
    `<svg viewBox="0 0 136 100" fill="none" stroke-linecap="round" stroke-linejoin="round" focusable="false">${WATER}${DRAWINGS[name]}</svg>`,
  )
}
