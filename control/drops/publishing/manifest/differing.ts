/** What two versions do not share. */
import type { ManifestFile, ManifestFiles } from '../../../../shared/contracts/manifest.ts'

/** A name whose entries are not the same object; `before` or `after` is missing where only one of the versions has it. */
export interface Differing {
  readonly path: string
  readonly before?: ManifestFile
  readonly after?: ManifestFile
}

/**
 * Manifests are sorted, and versions share the entries that did not change: both are walked side by side, and only the
 * others are compared by name. Lists in another order take longer, and give the same.
 */
export function differing(before: ManifestFiles, after: ManifestFiles): Differing[] {
  const found: Differing[] = []
  const gone = new Map<string, ManifestFile>()
  const fresh: Differing[] = []
  let place = 0
  for (const entry of after) {
    let former = before[place]
    while (former !== undefined && former !== entry && former[0] < entry[0]) {
      gone.set(former[0], former[1])
      former = before[(place += 1)]
    }
    if (former === undefined || (former !== entry && former[0] !== entry[0])) {
      fresh.push({ path: entry[0], after: entry[1] })
      continue
    }
    place += 1
    if (former !== entry) found.push({ path: entry[0], before: former[1], after: entry[1] })
  }
  for (const [path, file] of before.slice(place)) gone.set(path, file)
  for (const one of fresh) {
    const former = gone.get(one.path)
    gone.delete(one.path)
    if (former !== one.after) found.push(former === undefined ? one : { ...one, before: former })
  }
  for (const [path, file] of gone) found.push({ path, before: file })
  return found
}

/** Whether every name of `before` is one of `after` too. */
export function losesNothing(before: ManifestFiles, after: ManifestFiles): boolean {
  return differing(before, after).every((one) => one.after !== undefined)
}
