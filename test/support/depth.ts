/**
 * `npm test` is a function of the commit: the same seeds, the same sample of pages and forms, one accessibility engine.
 * `npm run test:deep` sets DEEP=1 and a SEED, which it prints: other inputs and more of them, everything in every view.
 */
export const IS_DEEP = process.env['DEEP'] === '1'

/** Where everything random begins. A failure that it names is repeated with the same SEED. */
export const SEED = Number(process.env['SEED'] ?? 1)

/** Whether passwords are hashed in a moment (`quick-passwords.ts`): in `npm test` and `npm run test:pages`, which say so. */
export const HAS_QUICK_PASSWORDS = process.env['QUICK_PASSWORDS'] === '1'

/**
 * Every view when deep. Else each test of a file is seen in one of them: the first test in the first, the next in the
 * next.
 */
export function byTurns<View>(views: readonly View[]): () => readonly View[] {
  let turn = 0
  return () => (IS_DEEP ? views : [views[turn++ % views.length]!])
}

/** Every one when deep. Else each one in one of two ways: by turns, the first in the first way. */
export function sampled<One>(all: readonly One[], isFirstWay: boolean): readonly One[] {
  return IS_DEEP ? all : all.filter((_, index) => (index % 2 === 0) === isFirstWay)
}
