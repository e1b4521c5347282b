/**
 * Values inside an inline script. The result is pure ASCII, so that it means the same in a page of any charset
 * and its CSP hash holds, and nothing in it can end the script element or open a comment.
 */
export function scriptValue(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&'`]|[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
