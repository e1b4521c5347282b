/**
 * Files that were hardly meant for visitors: credentials, private keys, repositories, dumps. One list and one decision
 * for all ways to publish: the client, the dashboard, the API, MCP. Pure; linear in the length of a path and of
 * the beginning of a file.
 */

export interface SecretCandidate {
  /** Relative, with `/`. */
  readonly path: string
  readonly size: number
  /** The beginning of the content, where it is at hand: at most SECRET_HEAD_BYTES. It tells a certificate from a key. */
  readonly head?: string | undefined
}

export interface SecretFile {
  readonly path: string
  /** Follows "looks like": `a private key`. */
  readonly what: string
}

/** A key stands at the start of its file; a chain of certificates before it is shorter than this. */
export const SECRET_HEAD_BYTES = 64_000

/** Every key in a file begins with this: without it there is no need to read the beginning as text. */
export const KEY_MARK = '-----BEGIN '

const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/

const BY_NAME: readonly {
  readonly pattern: RegExp
  readonly what: string
  readonly maxBytes?: number
  /** The name alone says little: where the content is at hand, it decides. */
  readonly needsKey?: boolean
}[] = [
  { pattern: /(?:^|\/)\.env(?:\.(?!example$|sample$|template$)[^/]*)?$/i, what: 'a file of environment variables' },
  { pattern: /(?:^|\/)\.git\//, what: 'part of a git repository' },
  { pattern: /(?:^|\/)\.(?:hg|svn)\//, what: 'part of a repository' },
  { pattern: /(?:^|\/)(?:id_rsa|id_dsa|id_ecdsa|id_ed25519)$/, what: 'a private SSH key' },
  { pattern: /\.(?:p12|pfx|keystore|jks|kdbx|ppk)$/i, what: 'a store of keys' },
  { pattern: /\.pem$/i, what: 'a private key', needsKey: true },
  // A presentation of a well-known program has the same ending, but never this size.
  { pattern: /\.key$/i, what: 'a private key', maxBytes: 20_000, needsKey: true },
  {
    pattern:
      /(?:^|\/)(?:\.npmrc|\.yarnrc\.yml|\.pypirc|\.netrc|\.pgpass|\.my\.cnf|\.htpasswd|\.git-credentials|\.aws\/(?:credentials|config)|\.ssh\/[^/]+|\.docker\/config\.json|\.dockercfg|\.kube\/config|wp-config\.php)$/,
    what: 'a file of credentials',
  },
  { pattern: /\.tfstate(?:\.backup)?$/i, what: 'a file of credentials' },
  { pattern: /\.(?:sqlite3?|db|sql|dump|bak)(?:\.(?:gz|bz2|xz|zst|zip))?$/i, what: 'a database or a backup' },
]

/** What a file looks like, when it looks like a secret. */
export function secretIn({ path, size, head: content }: SecretCandidate): string | undefined {
  const head = content?.slice(0, SECRET_HEAD_BYTES)
  const named = BY_NAME.find(
    ({ pattern, maxBytes = Infinity, needsKey }) =>
      size <= maxBytes && pattern.test(path) && !(needsKey && head !== undefined && !PRIVATE_KEY.test(head)),
  )
  if (named) return named.what
  // A page that shows a key in its text is a page; a file that begins with one is a key, whatever its name.
  return head !== undefined && head.trimStart().search(PRIVATE_KEY) === 0 ? 'a private key' : undefined
}

/** Those of an upload that must not become public unasked; a repository is many files and one mistake. */
export function secretFiles(files: Iterable<SecretCandidate>): SecretFile[] {
  const found: SecretFile[] = []
  const repositories = new Set<string>()
  for (const file of files) {
    const what = secretIn(file)
    if (what === undefined) continue
    const repository = /^(?:.*\/)?\.(?:git|hg|svn)\//.exec(file.path)?.[0]
    if (repository !== undefined) {
      if (repositories.has(repository)) continue
      repositories.add(repository)
    }
    found.push({ path: file.path, what })
  }
  return found
}
