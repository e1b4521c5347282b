/**
 * The phishing heuristic: scores an anonymous page by what pages that steal credentials have in common.
 * Pure and explainable: each sign that was found is named in the log and in the review queue.
 */
/** What the phishing heuristic says about a page. */
export interface Inspection {
  readonly verdict: 'ok' | 'review' | 'reject'
  readonly score: number
  readonly reasons: readonly string[]
}

/** Clear cases are refused, doubtful ones are published and looked at by a person. */
const REJECT_SCORE = 8
const REVIEW_SCORE = 5

interface Page {
  /** Lower-cased source, every run of white space one blank: what looks for `\s*` must not go back and forth in it. */
  readonly source: string
  /** Lower-cased visible text, title and alternative texts. */
  readonly words: string
  readonly asksForPassword: boolean
}

interface Sign {
  readonly name: string
  readonly score: number
  isPresent(page: Page): boolean
}

/** Names that kits imitate. Matched as whole words in what a visitor reads. */
const BRANDS = `paypal|microsoft|office ?365|outlook|onedrive|sharepoint|google|gmail|apple ?id|icloud|amazon|netflix|facebook|instagram|whatsapp|linkedin|twitter|dropbox|docusign|adobe|dhl|fedex|ups|usps|royal mail|chase|wells fargo|bank of america|citibank|hsbc|barclays|santander|sparkasse|deutsche bank|ing|revolut|coinbase|binance|metamask|trust ?wallet|ledger|kraken|steam|roblox|spotify|github|yahoo|aol|irs|hmrc`
const brandWords = new RegExp(`\\b(?:${BRANDS})\\b`)

const signs: readonly Sign[] = [
  { name: 'asks for a password', score: 2, isPresent: (page) => page.asksForPassword },
  {
    name: 'a credential form posts to another site',
    score: 5,
    isPresent: (page) =>
      page.asksForPassword && /<form\b[^<>]{0,500}\baction\s*=\s*["']?\s*(?:https?:)?\/\//.test(page.source),
  },
  {
    name: 'credentials are sent by mail',
    score: 4,
    isPresent: (page) => page.asksForPassword && /\baction\s*=\s*["']?\s*mailto:/.test(page.source),
  },
  {
    name: 'credentials go to a messenger or a form relay',
    score: 5,
    isPresent: (page) =>
      /api\.telegram\.org\/bot|discord(?:app)?\.com\/api\/webhooks|formsubmit\.co|formspree\.io|webhook\.site|script\.google\.com\/macros/.test(
        page.source,
      ) &&
      (page.asksForPassword || asksForCard(page)),
  },
  {
    name: "another brand's name beside a password field",
    score: 3,
    isPresent: (page) => page.asksForPassword && brandWords.test(page.words),
  },
  {
    name: 'urges the visitor to confirm an account',
    score: 2,
    isPresent: (page) =>
      /(?:verify|confirm|update|restore|unlock|validate)\s+(?:your\s+)?(?:account|identity|information|billing|payment|wallet|mailbox|details)|(?:account|mailbox)\s+(?:has been|will be|is)\s+(?:suspended|limited|locked|disabled|deactivated)|unusual (?:sign-?in|activity)/.test(
        page.words,
      ),
  },
  { name: 'asks for card or identity numbers', score: 3, isPresent: asksForCard },
  {
    name: 'asks for a wallet recovery phrase',
    score: 5,
    isPresent: (page) =>
      /<(?:input|textarea)\b/.test(page.source) &&
      /(?:seed|recovery|secret)[ -](?:recovery )?phrase|12[ -]word|24[ -]word|mnemonic/.test(page.words),
  },
  {
    name: 'a script is hidden by encoding',
    score: 4,
    isPresent: (page) =>
      /(?:eval|function)\s*\(\s*(?:atob|unescape|decodeuricomponent)\s*\(|document\.write\s*\(\s*(?:atob|unescape|decodeuricomponent)\s*\(/.test(
        page.source,
      ) ||
      /string\.fromcharcode\s*\((?:\s*\d+\s*,){60}/.test(page.source) ||
      /(?:\\x[0-9a-f]{2}){200}/.test(page.source),
  },
  {
    name: 'leads the visitor to another site at once',
    score: 3,
    isPresent: (page) =>
      /<meta\b[^<>]{0,200}http-equiv\s*=\s*["']?refresh[^<>]{0,200}url\s*=\s*["']?https?:/.test(page.source) ||
      /<script[^<>]{0,200}>\s*(?:window\.|document\.|top\.|self\.)?location(?:\.href|\.replace\(|\.assign\()?\s*=?\s*["'(]\s*["']?https?:/.test(
        page.source,
      ),
  },
  {
    name: "shows a brand's logo from the brand's own site",
    score: 2,
    isPresent: (page) =>
      page.asksForPassword &&
      /<img\b[^<>]{0,400}src\s*=\s*["']?https?:\/\/[^"'\s>]{0,100}(?:paypal|microsoft|google|apple|amazon|netflix|facebook|instagram|dhl|chase|coinbase)/.test(
        page.source,
      ),
  },
  {
    name: 'keeps the visitor from looking at the source',
    score: 1,
    isPresent: (page) => /oncontextmenu\s*=\s*["']?\s*return false|keycode\s*===?\s*123/.test(page.source),
  },
]

export function inspectPage(bytes: Buffer): Inspection {
  const page = readPage(bytes)
  const found = signs.filter((sign) => sign.isPresent(page))
  const score = found.reduce((sum, sign) => sum + sign.score, 0)
  return {
    score,
    reasons: found.map((sign) => sign.name),
    verdict: score >= REJECT_SCORE ? 'reject' : score >= REVIEW_SCORE ? 'review' : 'ok',
  }
}

/** A single blank is left as it is: to replace each by itself would take longer than all else. */
function readPage(bytes: Buffer): Page {
  const source = bytes
    .toString('utf8')
    .toLowerCase()
    .replace(/\s{2,}|[^\S ]/g, ' ')
  const words = withoutScripts(source)
    // Texts of attributes are put between two tags, where they are read like all others.
    .replace(/\b(?:alt|placeholder|value|aria-label)\s*=\s*"([^"]{0,200})"/g, '> $1 <')
    .replace(/<[^<>]{0,2000}>/g, ' ')
    .replace(/&nbsp;|&#160;|\s{2,}|[^\S ]/g, ' ')
  return {
    source,
    words,
    asksForPassword:
      /<input\b[^<>]{0,500}\btype\s*=\s*["']?password/.test(source) || /\btype\s*=\s*\\?["']password/.test(source),
  }
}

/** In one pass: a script that does not end stays, and nothing looks for its end again. */
function withoutScripts(source: string): string {
  const lastEnd = { script: source.lastIndexOf('</script>'), style: source.lastIndexOf('</style>') }
  const kept: string[] = []
  let from = 0
  for (const { 1: name, index } of source.matchAll(/<(script|style)\b/g)) {
    if (index < from || lastEnd[name as keyof typeof lastEnd] < index) continue
    kept.push(source.slice(from, index))
    from = source.indexOf(`</${name}>`, index) + `</${name}>`.length
  }
  return [...kept, source.slice(from)].join(' ')
}

function asksForCard(page: Page): boolean {
  return (
    /<input\b/.test(page.source) &&
    /\b(?:cvv|cvc|card number|card no|expiry date|social security|ssn)\b/.test(page.words + fieldNames(page.source))
  )
}

function fieldNames(source: string): string {
  const fields = source.matchAll(/<input\b[^<>]{0,300}?\b(?:name|id|autocomplete)\s*=\s*["']?([\w-]{1,40})/g)
  return Array.from(fields, ([, name = '']) => ` ${name.replaceAll(/[-_]/g, ' ')}`).join('')
}
