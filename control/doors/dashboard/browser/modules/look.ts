/** Looks at files before anything is sent, and decides as the service would: with its own functions. */
import { errors } from '../../../../../shared/contracts/errors.ts'
import { keyIn } from '../../../../../shared/content/private-key.ts'
import { secretIn, SMALL_SECRET_BYTES } from '../../../../../shared/content/secret-files.ts'
import { isSystemClutter, uploadKindOf, type UploadTerms } from '../../../../../shared/content/upload-kind.ts'
import { requireReadable, type ChosenFile } from './chosen-files.ts'
import { bytesInWords } from '../../../../../shared/values/sizes.ts'

/** A chain of certificates before a key is shorter. */
const MAX_READ_BYTES = 64_000

export interface Looked {
  readonly files: readonly ChosenFile[]
  readonly bytes: number
  /** What it is, to be read after "Publishing": `site with 6 files (1.2 MB)`. */
  readonly words: string
  readonly isArchive: boolean
}

/** Throws the refusal that the service would send. */
export async function lookAt(
  chosen: readonly ChosenFile[],
  terms: UploadTerms & { allowSecrets: boolean },
): Promise<Looked> {
  const files = chosen.filter(({ path }) => !isSystemClutter(path))
  const found = uploadKindOf(
    files.map(({ file, path }) => ({ path, size: file.size })),
    terms,
  )
  await requireReadable(files)
  if (!terms.allowSecrets) await refuseSecrets(files)
  const bytes = files.reduce((sum, { file }) => sum + file.size, 0)
  const name = found.kind === 'site' ? `a site with ${countOf(files.length)}` : found.name
  return { files, bytes, words: `${name} (${bytesInWords(bytes)})`, isArchive: found.kind === 'archive' }
}

function countOf(files: number): string {
  return files === 1 ? '1 file' : `${files} files`
}

async function refuseSecrets(files: readonly ChosenFile[]): Promise<void> {
  const blocked: { path: string; what: string }[] = []
  for (const { file, path } of files) {
    const { size } = file
    // What is larger, and has no such name, the service reads.
    const isLookedAt = size <= SMALL_SECRET_BYTES || secretIn({ path, size }) !== undefined
    const key = isLookedAt ? keyIn(await file.slice(0, MAX_READ_BYTES).text()) : undefined
    const what = secretIn({ path, size, key })
    if (what !== undefined) blocked.push({ path, what })
  }
  if (blocked.length > 0) throw errors.secretFiles(blocked)
}
