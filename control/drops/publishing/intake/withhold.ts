/**
 * Keeps files that look like secrets from becoming public, unless the publisher said that they are meant to be. What
 * counts as one is decided by shared/content/secret-files.ts, for every way in. Pure.
 */
import { errors } from '../../../../shared/contracts/errors.ts'
import type { KeyTrace } from '../../../../shared/content/private-key.ts'
import { secretFiles, secretIn, type SecretFile } from '../../../../shared/content/secret-files.ts'
import { LANDING_PAGE } from '../../../../shared/content/upload-kind.ts'
import type { SecretsPolicy, Withheld } from '../contract.ts'
import { storable } from '../html/text.ts'
import type { StoredFile } from '../manifest/manifest-builder.ts'

/** As many as a person reads. */
const MAX_BLOCKED_TOLD = 100

export interface Sifted<File> {
  readonly files: readonly File[]
  /** What is told of those that are not published. */
  readonly blocked: readonly SecretFile[]
  /** All of them. */
  readonly withheld: Withheld
  /** What looks like a secret and is public, because the publisher said so. */
  readonly allowed: readonly SecretFile[]
}

const NONE = { blocked: [], withheld: { paths: [], contents: [] } }

/** Whether a name says enough: such a file need not be read. */
export function isSecretByName({ path, size }: StoredFile): boolean {
  return secretIn({ path, size, key: 'none' }) !== undefined
}

/** `keyOf`: what the content of a file says, undefined where it was not looked at. */
export function siftSecrets<File extends StoredFile>(
  files: readonly File[],
  keyOf: (file: File) => KeyTrace | undefined,
  secrets: SecretsPolicy,
): Sifted<File> {
  const candidateOf = (file: File) => ({ path: file.path, size: file.size, key: keyOf(file) })
  if (secrets === 'allow') return { files, ...NONE, allowed: told(secretFiles(files.map(candidateOf))) }
  const found = new Map<File, string>()
  for (const file of files) {
    const what = secretIn(candidateOf(file))
    if (what !== undefined) found.set(file, what)
  }
  if (found.size === 0) return { files, ...NONE, allowed: [] }
  // What was made of a document goes by the name of that.
  const paths = new Map(Array.from(found, ([file, what]) => [(file.source ?? file).path, what]))
  const blocked = told(Array.from(paths, ([path, what]) => ({ path, what })).slice(0, MAX_BLOCKED_TOLD))
  // Without its landing page nothing of a site can be published.
  const isRefused = secrets === 'refuse' || [...found.keys()].some(({ path }) => path === LANDING_PAGE)
  if (isRefused) throw errors.secretFiles(blocked)
  const betrayed = Array.from(found.keys()).filter((file) => !isSecretByName(file))
  const contents = betrayed.flatMap(({ hash, source }) => (source ? [hash, source.hash] : [hash]))
  const withheld = { paths: [...paths.keys()], contents: [...new Set(contents)] }
  return { files: files.filter((file) => !found.has(file)), blocked, withheld, allowed: [] }
}

function told(found: readonly SecretFile[]): SecretFile[] {
  return found.map(({ path, what }) => ({ path: storable(path), what }))
}
