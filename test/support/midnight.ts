/** For tests of what is counted once a day, which may run over midnight. */

/** Begins to watch the day; tells how many views there may be where a day sees so many: who comes back on the next is counted again. */
export function watchDay(): (views: number) => number[] {
  const day = new Date().getUTCDate()
  return (views) => (new Date().getUTCDate() === day ? [views] : [views, views + 1])
}
