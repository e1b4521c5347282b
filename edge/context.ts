/**
 * The vocabulary that the steps of the edge share. A step imports this file, its own folder, store/ and shared/;
 * never another step. Decisions are values: a step says what should happen, `send` makes it happen.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable, Writable } from 'node:stream'
import type { ManifestFile, ManifestFiles, RedirectRule } from '../shared/contracts/manifest.ts'
import type { CompiledHeaders, HeaderSet } from '../shared/content/header-sets.ts'
import type { RuleDestination } from '../shared/content/path-pattern.ts'
import type { PatternSet } from '../shared/content/pattern-set.ts'
import type { RouteRecord, SiteRoute } from '../shared/contracts/route-record.ts'

/** One request as it arrived, the same for HTTP/1.1 and HTTP/2. */
export interface Arrival {
  readonly method: string
  /** Request target in origin form, undecoded: path and query. */
  readonly target: string
  /** Parsed host, see shared/http/hosts.ts. */
  readonly host: string
  /** Visitor's address: the socket's, or what a trusted proxy says. */
  readonly ip: string
  /** A request header by lower-case name. */
  header(name: string): string | undefined
}

/** A manifest made ready for look-ups; built once per manifest hash and cached. */
export interface SiteIndex {
  readonly files: ReadonlyMap<string, ManifestFile>
  /** Characters of the longest name: no longer path can be a file's. */
  readonly longestName: number
  /** Those that have a page of their own, without the slash at their end. */
  readonly folders: ReadonlySet<string>
  /** The site's own 404 pages. */
  readonly notFoundPages: NotFoundPages
  readonly redirects: CompiledRedirects
  readonly headers: CompiledHeaders
  /** What former versions had and this one has not; undefined where there is nothing. */
  readonly kept: KeptIndex | undefined
}

/** What a stretch of a manifest's files says. Versions of a site share those of the stretches that they have in common. */
export interface FilesIndex {
  /** By the names that are looked for. */
  readonly files: ManifestFiles
  /** Characters of the longest name. */
  readonly longestName: number
  readonly folders: readonly string[]
  readonly notFoundPages: readonly (readonly [directory: string, ManifestFile])[]
}

export interface KeptIndex {
  readonly files: ReadonlyMap<string, KeptEntry>
  /** Characters of the longest name. */
  readonly longestName: number
}

export interface KeptEntry {
  readonly file: ManifestFile
  /** What `_headers` of its own version said about it. */
  readonly custom: HeaderSet
}

/** 404.html by the directory that it stands for, `''` or `docs/`. */
export interface NotFoundPages {
  readonly byDirectory: ReadonlyMap<string, ManifestFile>
  /** Slashes in the deepest of these directories, and the characters of the longest. */
  readonly deepest: number
  readonly longest: number
}

export interface CompiledRedirects {
  readonly rules: readonly CompiledRedirect[]
  readonly patterns: PatternSet
  /** Whether a rule may win over a real file; without one, a hit tries no rule at all. */
  readonly hasForced: boolean
}

export interface CompiledRedirect {
  readonly rule: RedirectRule
  readonly destination: RuleDestination
  /** Values of placeholders and of the splat when the decoded path matches. */
  match(path: string): readonly string[] | undefined
}

/** What `locate` decides: pure, from index + path + settings. */
export type Intent =
  | {
      readonly kind: 'asset'
      /** Path of the file in the manifest. */
      readonly path: string
      readonly file: ManifestFile
      /** 404 when it is the site's own 404.html. */
      readonly status: 200 | 404
      /** Headers that `_headers` sets for this path. */
      readonly custom: HeaderSet
    }
  | { readonly kind: 'redirect'; readonly status: 301 | 302 | 303 | 307 | 308; readonly location: string }
  /** Nothing there and no 404.html: the branded page. */
  | { readonly kind: 'missing' }
  /** Malformed percent-encoding, NUL, …: 400. */
  | { readonly kind: 'malformed' }

/** What `gate` decides about a drop before any content is looked at. */
export type Verdict =
  | { readonly kind: 'open' }
  | { readonly kind: 'closed'; readonly page: ClosedPage; readonly status: 404 | 410 | 503 }

export type ClosedPage = 'unknown' | 'reserved' | 'gone' | 'expired' | 'removed' | 'unverified' | 'paused'

/** How a page is read: XML tolerates no bare `&` or `<` in a script, and nothing behind its end. */
export type Markup = 'html' | 'xhtml'

/** Snippets to insert into the pages of a drop; one object per distinct settings, markup and language, cached. */
export interface Snippets {
  readonly markup: Markup
  /** Part of the ETag: changes when a setting or a snippet changes. */
  readonly key: string
  readonly head: Buffer
  readonly body: Buffer
  /** Stands at the end of the head too, of pages that name no picture of themselves. */
  readonly card?: Buffer | undefined
  /** Stand around the outermost `<frameset>` of a page that has one in place of a body; undefined without a badge. */
  readonly frames?: { readonly open: Buffer; readonly close: Buffer } | undefined
  /** What a page's own Content-Security-Policy must additionally allow. */
  readonly csp: {
    readonly scriptSrc: readonly string[]
    readonly connectSrc: readonly string[]
    readonly imgSrc: readonly string[]
    readonly styleSrc: readonly string[]
    readonly frameSrc: readonly string[]
  }
  /** The origin that may show the page in a frame, whatever its own headers say. */
  readonly frameAncestor?: string
  /** True when the choice of snippet depends on accept-language (consent banner). */
  readonly variesByLanguage: boolean
}

/** A route as visits need it: manifests of retained versions are looked up when a visitor asks for one. */
export type ServedSite = Omit<SiteRoute, 'versions'>
export type ServedRoute = ServedSite | Exclude<RouteRecord, SiteRoute> | UnsureRoute

/** What this edge holds of the host may be older than what a publisher was told that all visitors see. */
export interface UnsureRoute {
  readonly kind: 'unsure'
  readonly host: string
  readonly revision: 0
}

/** A drop as one host shows it: its live version, or a retained one at a preview address. */
export interface Drop {
  readonly route: ServedSite
  readonly versionNumber: number
  readonly isProtected: boolean
  readonly isPreview: boolean
  /** Only members of the drop's organisation may look. */
  readonly isForMembers: boolean
  /** Who looks at it, where only its viewers may (shared/contracts/admission.ts). */
  readonly viewer?: string
  /** Shown in the frame of the review page: pages carry its helper and nothing else. */
  readonly isFramed?: boolean
  /** What the frame gets with its first page, for all that the page loads. */
  readonly frameCookie?: string
  /** The name of the preview that the host shows; undefined for a numbered one. */
  readonly previewName?: string
  /** Who looks is a member of the drop's organisation, as far as that was asked. */
  readonly isMember?: boolean
  /** Opened by a token: scripts of any page may read the answer. */
  readonly isForProgram?: boolean
}

/**
 * Header names (lower case) and values in turn, ready to be sent. The list itself is the key under which its bytes are kept
 * (`WeakMap` by identity): one that is sent again and again is made once and never changed.
 */
export type HeaderList = readonly string[]

/** One request and the way to answer it; made by accept, the same for both protocols. */
export interface Exchange extends Arrival {
  /** `:authority` or `Host` as it came; undefined when missing, repeated or contradictory. */
  readonly authority: string | undefined
  /** Does the certificate of this connection stand for the host? */
  certificateCovers(host: string): boolean
  /** Counts this request; false when the visitor's network sends more than its share. */
  countRequest(): boolean
  /** Names the parsed host; classify calls it once. */
  named(host: string): void
  /** Answers with a whole body (none for HEAD, 204 and 304). */
  send(status: number, headers: HeaderList, body: Buffer | undefined): void
  /**
   * Answers with a stream of that many bytes, at the visitor's pace; destroys it when the visitor leaves. Without a length
   * it lasts as long as its source does.
   */
  stream(status: number, headers: HeaderList, source: Readable, length: number | undefined): void
  readonly isAnswered: boolean
  /** Undefined for a plain request, which has no body and is never control's to answer. */
  readonly full: FullExchange | undefined
}

/** What is passed on to control of a request, and where its answer goes. */
export interface ForControl {
  readonly headers: IncomingHttpHeaders
  readonly body: Readable
  readonly answer: ControlsAnswer
}

/** Closed when the answer is out, or the visitor gone. `aborted`: gone before; node:http2 has ended it then, and it seems whole. */
export type ControlsAnswer = Writable & { readonly aborted?: boolean }

/** An exchange whose request may have a body, or be control's to answer. */
export interface FullExchange extends Exchange {
  /** Answers with what control says, at the visitor's pace; destroys it when the visitor leaves. */
  relay(status: number, headers: HeaderList, source: Readable): void
  /** To a visitor who waits for a word before they send their body (RFC 9110 §10.1.1): it is wanted. */
  askForBody(): void
  /** Counts a piece of the body; a network that divides its bodies too finely loses the connection. */
  countPiece(bytes: number): void
  /** The request's body; undefined when it is longer or takes longer than a form may. */
  readForm(maxBytes: number): Promise<Buffer | undefined>
  /** Control is to answer. */
  forControl(): ForControl
  /** Nobody reads what comes of the body. */
  ignoreBody(): void
}

/** A page that was shown: `<site_id>|<YYYY-MM-DD>`, the network, and who saw which page, as a hash. */
export type SeenPage = readonly [key: string, network: string, visitor: string]
