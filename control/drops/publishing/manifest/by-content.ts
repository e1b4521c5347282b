import { mediaTypeOf } from '../files/types.ts'
import type { StoredFile } from './manifest-builder.ts'

type ContentKey = Pick<StoredFile, 'path' | 'hash'>

/** Something about each content. The same bytes are another content under a name of another type: what they mean depends on it. */
export class ByContent<Value> {
  readonly #byType = new Map<string, Map<string, Value>>()

  constructor(entries: Iterable<readonly [ContentKey, Value]> = []) {
    for (const [file, value] of entries) this.set(file, value)
  }

  get({ path, hash }: ContentKey): Value | undefined {
    return this.#byType.get(mediaTypeOf(path))?.get(hash)
  }

  has({ path, hash }: ContentKey): boolean {
    return this.#byType.get(mediaTypeOf(path))?.has(hash) ?? false
  }

  set({ path, hash }: ContentKey, value: Value): void {
    const type = mediaTypeOf(path)
    let byHash = this.#byType.get(type)
    if (byHash === undefined) this.#byType.set(type, (byHash = new Map()))
    byHash.set(hash, value)
  }

  delete({ path, hash }: ContentKey): void {
    this.#byType.get(mediaTypeOf(path))?.delete(hash)
  }

  get size(): number {
    return this.#byType.values().reduce((sum, byHash) => sum + byHash.size, 0)
  }

  values(): Value[] {
    return [...this.#byType.values()].flatMap((byHash) => [...byHash.values()])
  }
}
