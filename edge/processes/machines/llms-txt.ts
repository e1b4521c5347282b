/** The list of a drop's pages for machines that have none of the drop's own, in the format of llmstxt.org. Pure; linear. */

/** A reader needs an overview; the rest is found by links. */
export const MAX_LISTED_PAGES = 500
const MAX_TITLE_CHARS = 200

export interface ListedPage {
  readonly address: string
  /** The beginning of the page as served. */
  readonly head: string
}

/** The landing page comes first and gives the list its name. */
export function llmsTxt(host: string, [landing, ...others]: readonly ListedPage[], left: number): string {
  const about = descriptionOf(landing?.head ?? '')
  const lines = [landing, ...others].flatMap((page) => (page === undefined ? [] : [lineOf(page)]))
  return [
    `# ${(titleOf(landing?.head ?? '') ?? host).replaceAll('\n', ' ')}`,
    '',
    ...(about === undefined ? [] : [`> ${about}`, '']),
    'Every page answers `Accept: text/markdown` with Markdown.',
    '',
    '## Pages',
    '',
    ...lines,
    ...(left > 0 ? ['', `${left} more pages are not listed.`] : []),
    '',
  ].join('\n')
}

function lineOf({ address, head }: ListedPage): string {
  const name = titleOf(head) ?? new URL(address).pathname
  return `- [${name.replace(/[[\]]/g, '\\$&')}](${address})`
}

function titleOf(head: string): string | undefined {
  return plainText(/<title[^<>]*>([^<]*)/i.exec(head)?.[1])
}

function descriptionOf(head: string): string | undefined {
  for (const [tag] of head.matchAll(/<meta\b[^<>]*>/gi)) {
    if (!/\bname\s*=\s*["']?description\b/i.test(tag)) continue
    return plainText(/\bcontent\s*=\s*(?:"([^"]*)"|'([^']*)')/i.exec(tag)?.slice(1).find(Boolean))
  }
  return undefined
}

const REFERENCES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: ' ' }

function plainText(text: string | undefined): string | undefined {
  const line = text
    ?.slice(0, 4 * MAX_TITLE_CHARS)
    .replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (_, name: string) => REFERENCES[name] ?? '')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_TITLE_CHARS)
  return line === '' ? undefined : line
}
