/** Keeps chosen files in this browser while their publisher signs up: what was let go once need not be found again. */
import type { ChosenFile } from './chosen-files.ts'

const STORE = 'chosen-files'
const KEY = 'last'
/** Whoever signs up does so within this time; after it the files are nobody's business. */
const KEPT_MS = 3_600_000

interface Kept {
  readonly files: readonly ChosenFile[]
  readonly at: number
}

export async function keepFiles(files: readonly ChosenFile[]): Promise<void> {
  const kept: Kept = { files, at: Date.now() }
  await inStore('readwrite', (store) => store.put(kept, KEY))
}

/** Hands them out once. */
export async function takeKeptFiles(): Promise<readonly ChosenFile[]> {
  const kept = (await inStore('readonly', (store) => store.get(KEY))) as Kept | undefined
  await inStore('readwrite', (store) => store.delete(KEY))
  return kept && Date.now() - kept.at < KEPT_MS ? kept.files : []
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
