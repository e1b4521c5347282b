/** Limits that are not part of a plan. Each has a unit in its name and a reason. */

/** A bundle of more files is a mistake (node_modules) or an attack, unless a plan says otherwise. */
export const DEFAULT_BUNDLE_FILES = 20_000
/** No plan allows more: what lists of files cost is measured up to here. */
export const MAX_BUNDLE_FILES = 100_000
/** What ext4 and every browser agree on. */
export const MAX_PATH_SEGMENT_BYTES = 255
export const MAX_PATH_DEPTH = 32
export const MAX_PATH_BYTES = 1024
/** All header lines of a request together; 431 beyond, at the edge and at control alike. */
export const MAX_HEADER_BYTES = 32_768
/** JSON bodies are settings, not content. */
export const MAX_JSON_BYTES = 1_000_000
/** Forms that carry text: a page to be previewed, a filled-in template, what waits for its writer to sign in. */
export const MAX_TEXT_FORM_BYTES = 1_000_000
/** The list of a bundle of MAX_BUNDLE_FILES files: path, hash and size of each. */
export const MAX_FILE_LIST_BYTES = 20_000_000
export const MAX_NAME_CHARS = 120
/** What the title or first heading of a page is cut to. */
export const MAX_TITLE_CHARS = 200
export const MAX_MESSAGE_CHARS = 500
export const MAX_PASSWORD_CHARS = 256
/** What is wrong with a reported drop, in the visitor's words. */
export const MAX_REPORT_CHARS = 2000
/** RFC 5321 §4.5.3.1. */
export const MAX_EMAIL_CHARS = 254
/** RFC 1035 §2.3.4, written with dots. */
export const MAX_HOST_CHARS = 253
/** An address is one label of a DNS name. */
export const MIN_SLUG_CHARS = 3
export const MAX_SLUG_CHARS = 63
/** One bad line must not cost the whole publish. */
export const MAX_REDIRECT_LINE_CHARS = 2000
export const MAX_REDIRECT_RULES = 2000
export const MAX_HEADER_RULES = 500
/** What `_headers` may add to one answer, names and values: half of what common clients and proxies take. */
export const MAX_CUSTOM_HEADER_BYTES = 32_768
/** All headers of `_headers`: an edge keeps them in memory for as long as the drop is visited. */
export const MAX_HEADER_RULES_BYTES = 100_000
/**
 * Content-Security-Policies, each of which the edge extends whenever it sends a page. A hand-made page has one or two, of a
 * kilobyte; thousands are an attempt to make every visit expensive (2 s for 40,000 metas).
 *
 * `inPage`: what control accepts in the metas of one page. `extended`: what the edge extends, in the metas of a page or in
 * one header; beyond, the page stays as it is and its own policies decide about the snippets. The edge's limit is the
 * larger one, so that everything that control accepts, in metas or in `_headers` (MAX_CUSTOM_HEADER_BYTES), is extended.
 */
export const CSP_LIMITS = {
  inPage: { policies: 16, chars: 32_000 },
  extended: { policies: 32, chars: 65_536 },
} as const
/** How long control waits for every live edge before it answers `dropway-propagation: pending`. */
export const PROPAGATION_WAIT_MS = 2000
/** Files of an upload up to this size travel several to a request; larger ones alone, so that they can be resumed. */
export const MAX_BATCHED_FILE_BYTES = 256_000
