/**
 * A path of the host that was asked: `next` comes from a form or a link that anybody may have written, and must not lead
 * a visitor to another site. Browsers read `//host` and `/\host` as another host, and drop tabs and line breaks before
 * they look, so only printable ASCII without a backslash passes. They do not decode: `/%2fhost` is a path.
 */
const OWN_PATH = /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/

/** Where to go next: where `next` says if that is a path of ours, else to `fallback`. */
export function safeNext(next: string | null | undefined, fallback: string): string {
  return next != null && OWN_PATH.test(next) ? next : fallback
}
