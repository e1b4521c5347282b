/** Keeps chosen files, and what was typed beside them, in this browser while their publisher signs up or in again. */
import type { ChosenFile } from './chosen-files.ts'

const STORE = 'chosen-files'
const KEY = 'last'
/** Whoever signs up does so within this time; after it the files are nobody's business. */
const KEPT_MS = 3_600_000

export interface Kept {
  readonly files: readonly ChosenFile[]
  readonly fields: readonly (readonly [name: string, value: string])[]
}

const NOTHING: Kept = { files: [], fields: [] }

/** Rejects where the browser keeps nothing, as some do in private windows. */
export async function keepInBrowser(kept: Kept): Promise<void> {
  await inStore('readwrite', (store) => store.put({ ...kept, at: Date.now() }, KEY))
}

/** Hands it out once. */
export async function takeKept(): Promise<Kept> {
  const kept = (await inStore('readonly', (store) => store.get(KEY))) as (Kept & { at: number }) | undefined
  await inStore('readwrite', (store) => store.delete(KEY))
  return kept && Date.now() - kept.at < KEPT_MS ? kept : NOTHING
}

async function inStore(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest): Promise<unknown> {
  const opening = indexedDB.open('dropway', 1)
  opening.addEventListener('upgradeneeded', () => opening.result.createObjectStore(STORE))
  const database = (await settled(opening)) as IDBDatabase
  try {
    return await settled(act(database.transaction(STORE, mode).objectStore(STORE)))
  } finally {
    database.close()
  }
}

function settled(request: IDBRequest): Promise<unknown> {
  return new Promise((resolve, reject) => {
    request.addEventListener('success', () => resolve(request.result))
    request.addEventListener('error', () => reject(request.error ?? new Error('The browser keeps no files.')))
  })
}
