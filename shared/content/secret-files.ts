/**
 * Files that were hardly meant for visitors: credentials, private keys, repositories, dumps. One list and one decision
 * for all ways to publish: the client, the dashboard, the API, archives, MCP. Names count without regard to case; a
 * private key counts whatever the name of its file (private-key.ts finds it). Pure; linear in the length of a path.
 */
import type { KeyTrace } from './private-key.ts'

export interface SecretCandidate {
  /** Relative, with `/`. */
  readonly path: string
  readonly size: number
  /** What the content says, where it was looked at. It tells a certificate from a key. */
  readonly key?: KeyTrace | undefined
}

export interface SecretFile {
  readonly path: string
  /** Follows "looks like": `a private key`. */
  readonly what: string
}

/** A file up to this size is looked at whatever its name: keys are small. */
export const SMALL_SECRET_BYTES = 20_000

const BY_NAME: readonly {
  readonly pattern: RegExp
  readonly what: string
  readonly maxBytes?: number
  /** What the pattern matches and is meant to be shown. */
  readonly except?: RegExp
  /** The name alone says little: where the content was looked at, it decides. */
  readonly needsKey?: boolean
}[] = [
  {
    pattern: /(?:^|\/)\.env(?:rc)?(?:[.\-_~][^/]*)?$/i,
    except: /[.\-_](?:example|sample|template|dist)$/i,
    what: 'a file of environment variables',
  },
  { pattern: /(?:^|\/)\.git(?:\/|$)/i, what: 'part of a git repository' },
  { pattern: /(?:^|\/)\.(?:hg|svn|bzr|jj)\//i, what: 'part of a repository' },
  { pattern: /(?:^|\/)id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$/i, what: 'a private SSH key' },
  { pattern: /\.(?:p12|pfx|keystore|jks|kdbx|ppk)$/i, what: 'a store of keys' },
  { pattern: /(?:^|\/)master\.key$/i, what: 'a key that opens credentials', maxBytes: SMALL_SECRET_BYTES },
  { pattern: /\.pem$/i, what: 'a private key', needsKey: true },
  // A presentation of a well-known program has the same ending, but never this size.
  { pattern: /\.key$/i, what: 'a private key', maxBytes: SMALL_SECRET_BYTES, needsKey: true },
  {
    pattern:
      /(?:^|\/)(?:\.dev\.vars|\.npmrc|\.yarnrc\.yml|\.pypirc|[._]netrc|\.pgpass|\.my\.cnf|\.s3cfg|\.boto|\.vault-token|\.htpasswd|\.git-credentials|\.(?:bash|zsh|psql|mysql)_history|\.cargo\/credentials(?:\.toml)?|\.gem\/credentials|\.aws\/(?:credentials|config)|\.(?:ssh|gnupg)\/[^/]+|\.docker\/config\.json|\.dockercfg|\.kube\/config|wp-config\.php)$/i,
    what: 'a file of credentials',
  },
  { pattern: /\.(?:tfstate(?:\.backup)?|tfvars(?:\.json)?)$/i, what: 'a file of credentials' },
  { pattern: /\.(?:sqlite3?|db|sql|dump|bak)(?:\.(?:gz|bz2|xz|zst|zip))?$/i, what: 'a database or a backup' },
]

/** Matches every name that one of them matches: nearly all names are told from secrets by it alone. */
const ANY_NAME = new RegExp(BY_NAME.map(({ pattern }) => pattern.source).join('|'), 'i')

/** Pages show keys to talk about them: what counts there is one that can be used. */
const PAGE = /\.(?:html?|xhtml|md|markdown)$/i

/** What a file looks like, when it looks like a secret. */
export function secretIn({ path, size, key }: SecretCandidate): string | undefined {
  const named = ANY_NAME.test(path)
    ? BY_NAME.find(
        ({ pattern, except, maxBytes = Infinity, needsKey }) =>
          size <= maxBytes && pattern.test(path) && !except?.test(path) && !(needsKey && key === 'none'),
      )
    : undefined
  if (named) return named.what
  return key === 'whole key' || (key === 'key' && !PAGE.test(path)) ? 'a private key' : undefined
}

/** Those of an upload that must not become public unasked; a repository is many files and one mistake. */
export function secretFiles(files: Iterable<SecretCandidate>): SecretFile[] {
  const found: SecretFile[] = []
  const repositories = new Set<string>()
  for (const file of files) {
    const what = secretIn(file)
    if (what === undefined) continue
    const repository = /^(?:.*\/)?\.(?:git|hg|svn|bzr|jj)\//i.exec(file.path)?.[0]
    if (repository !== undefined) {
      if (repositories.has(repository)) continue
      repositories.add(repository)
    }
    found.push({ path: file.path, what })
  }
  return found
}
