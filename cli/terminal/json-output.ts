/** What `--json` prints, and what the service answers: the types that the package publishes. */

/** What people say about a drop. */
export interface Thread {
  readonly id: string
  readonly page: string
  readonly state: string
  readonly label: string | null
  readonly placement: string
  readonly anchor: { readonly exact: string; readonly element?: string; readonly src?: string } | null
  readonly found: { readonly file?: string; readonly line?: number } | null
  readonly messages: readonly { readonly author: { readonly name: string }; readonly body: string }[]
}

export interface Site {
  readonly id: string
  readonly slug: string
  readonly name: string
  readonly url: string
  readonly state: string
  readonly access_mode: string
  readonly has_password: boolean
  readonly spa_fallback: boolean
  readonly gallery: boolean
  readonly live_version_id: string | null
  readonly expires_at: string | null
  readonly updated_at: string
  readonly views_30d: number
}

/** Someone who may see a drop. */
export interface DropViewer {
  readonly id: string
  readonly kind: 'email' | 'domain'
  readonly value: string
  readonly role: string
  readonly created_at: string
  readonly invited_at: string | null
  readonly first_opened_at: string | null
  readonly last_opened_at: string | null
  readonly visits: number
}

/** A workflow that a drop trusts. */
export interface DropPublisher {
  readonly id: string
  readonly provider: string
  readonly repository: string
  readonly workflow: string | null
  readonly branch: string | null
  readonly environment: string | null
  readonly pull_requests: boolean
  readonly last_used_at: string | null
}

export interface GuestLink {
  readonly id: string
  readonly name: string
  /** Only where it was just made. */
  readonly url?: string
  readonly role: string
  readonly expires_at: string | null
  readonly max_uses: number | null
  readonly uses: number
  readonly last_opened_at: string | null
  readonly created_at: string
}

/** `shared --json`: a drop of someone else's. */
export interface SharedDrop {
  readonly id: string
  readonly url: string
  readonly title: string
  readonly shared_by: string
  readonly role: string
  readonly shared_at: string
  readonly last_opened_at: string | null
}

export interface Warning {
  readonly code: string
  readonly message: string
  readonly path?: string
  readonly line?: number
  /** How many files it is about. A service of an earlier release does not say. */
  readonly count?: number
}

export interface Version {
  readonly version_id: string
  readonly version_number: number
  readonly byte_size: number
  readonly file_count: number
  readonly message?: string
  readonly url?: string
  readonly preview_url?: string | null
  /** The named preview that it was published to; null where it went live. */
  readonly preview?: string | null
  /** Where a deploy asked for one; shown once. */
  readonly guest_link?: GuestLink
  readonly report?: {
    readonly warnings: readonly Warning[]
    /** Files that looked like secrets and were not published. */
    readonly blocked?: readonly { readonly path: string; readonly what: string }[]
    /** Files of former versions that stay reachable for open tabs. */
    readonly kept?: { readonly files: number; readonly bytes: number; readonly until: string | null }
  }
}

export interface VersionEntry extends Version {
  readonly created_at: string
  readonly live: boolean
  /** When it was made live again, newest first. */
  readonly promotions?: readonly {
    readonly at: string
    readonly by: string | null
    readonly from_version_number: number | null
  }[]
}

export interface Preview {
  readonly name: string
  readonly url: string | null
  readonly version_id: string
  readonly version_number: number
  readonly file_count: number
  readonly byte_size: number
  readonly live: boolean
  readonly published_at: string
  readonly expires_at: string
}

/** `deploy --json`. */
export interface Deployed {
  readonly url: string
  readonly id: string
  readonly slug: string
  readonly unchanged: boolean
  /** Null when what is live is already this. */
  readonly version: Version | null
  readonly access_mode: string
  readonly guest_link: GuestLink | null
}

/**
 * `deploy --dry-run --json` and `diff --json`: paths, compared with what is live, or with what is at the preview that is
 * named. A preview that the deploy would make is compared with what is live.
 */
export interface Changes {
  readonly site: { readonly id: string; readonly slug: string } | null
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
  readonly unchanged: boolean
  /** Null when there is nothing yet; undefined of a service that does not say. */
  readonly compared_with?: 'live' | 'preview' | null
  /** What would have to be sent. */
  readonly missing: { readonly file_count: number; readonly byte_size: number }
}

/** `drop --json`. */
export interface AnonymousDrop {
  readonly url: string
  readonly id: string
  readonly slug: string
  readonly claim_url: string
  readonly expires_at: string
}

/** Any command that fails, with `--json`. */
export interface Failure {
  readonly error: string
  readonly detail: string
}
