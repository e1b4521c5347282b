/**
 * Reads single tokens of an HTML document from its bytes, following the tokenizer states of the WHATWG standard
 * (§13.2.5). It works on bytes of any ASCII-compatible encoding, so that offsets fit the file as it was uploaded.
 */
const TAB = 0x09
const LINE_FEED = 0x0a
const FORM_FEED = 0x0c
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const BANG = 0x21
const DOUBLE_QUOTE = 0x22
const SINGLE_QUOTE = 0x27
const DASH = 0x2d
const SLASH = 0x2f
export const LESS_THAN = 0x3c
const EQUALS = 0x3d
const GREATER_THAN = 0x3e
const QUESTION_MARK = 0x3f

export interface Attribute {
  /** Lower case. */
  readonly name: string
  /** Where the value stands, without its quotes; both are 0 when there is none. */
  readonly start: number
  readonly end: number
  readonly quoted: boolean
}

export interface Tag {
  readonly kind: 'start' | 'end'
  /** Lower case. */
  readonly name: string
  readonly start: number
  /** After the `>`. */
  readonly end: number
  readonly selfClosing: boolean
  /** Those that a reader of tags may ask for; of two with one name the first counts. */
  readonly attributes: ReadonlyMap<string, Attribute>
}

/** What stands at a `<`. */
export type Markup =
  | Tag
  /** Comment, doctype, CDATA section, processing instruction, `</>`: nothing that builds the page. */
  | { readonly kind: 'other'; readonly end: number }
  /** The `<` is a character like any other. */
  | { readonly kind: 'text' }
  /** The document ends inside this token. */
  | { readonly kind: 'unfinished' }

/**
 * The attributes that callers ask for. The others are passed over: a tag of a million attributes must not become a
 * million objects.
 */
const KNOWN_ATTRIBUTES: ReadonlySet<string> = new Set(
  `action alt charset color content data encoding face href http-equiv name poster rel size src srcset type xlink:href`.split(
    ' ',
  ),
)
const LONGEST_KNOWN_ATTRIBUTE = Math.max(...Array.from(KNOWN_ATTRIBUTES, (name) => name.length))

const UNFINISHED: Markup = { kind: 'unfinished' }
const TEXT: Markup = { kind: 'text' }

export function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === LINE_FEED || byte === TAB || byte === CARRIAGE_RETURN || byte === FORM_FEED
}

function isLetter(byte: number | undefined): boolean {
  if (byte === undefined) return false
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x7a
}

/** Ends a tag name, and the name in an "appropriate end tag". */
function endsName(byte: number | undefined): boolean {
  return isSpace(byte) || byte === SLASH || byte === GREATER_THAN
}

/** Reads the token at a `<`. `inForeign`: the current node is an SVG or MathML element, where CDATA sections exist. */
export function readMarkup(bytes: Buffer, lessThan: number, inForeign: boolean): Markup {
  const next = bytes[lessThan + 1]
  if (isLetter(next)) return readTag(bytes, lessThan, 'start')
  if (next === BANG) return readDeclaration(bytes, lessThan, inForeign)
  if (next === QUESTION_MARK) return until(bytes, '>', lessThan)
  if (next !== SLASH) return TEXT
  const afterSlash = bytes[lessThan + 2]
  if (isLetter(afterSlash)) return readTag(bytes, lessThan, 'end')
  // A bogus comment, the `</>` that vanishes, or the very end: text, but what followed it would become a comment.
  return until(bytes, '>', lessThan)
}

function readDeclaration(bytes: Buffer, lessThan: number, inForeign: boolean): Markup {
  if (bytes[lessThan + 2] === DASH && bytes[lessThan + 3] === DASH) return readComment(bytes, lessThan)
  if (inForeign && startsWith(bytes, '<![CDATA[', lessThan)) return until(bytes, ']]>', lessThan)
  return until(bytes, '>', lessThan)
}

function readComment(bytes: Buffer, lessThan: number): Markup {
  const content = lessThan + 4
  // `<!-->` and `<!--->` are complete comments.
  if (bytes[content] === GREATER_THAN) return { kind: 'other', end: content + 1 }
  if (bytes[content] === DASH && bytes[content + 1] === GREATER_THAN) return { kind: 'other', end: content + 2 }
  // `-->` or `--!>`, whichever comes first: looking for one of them alone might read the whole rest for each comment.
  for (let at = bytes.indexOf('--', content); at >= 0; at = bytes.indexOf('--', at + 1)) {
    if (bytes[at + 2] === GREATER_THAN) return { kind: 'other', end: at + 3 }
    if (bytes[at + 2] === BANG && bytes[at + 3] === GREATER_THAN) return { kind: 'other', end: at + 4 }
  }
  return UNFINISHED
}

function until(bytes: Buffer, mark: string, from: number): Markup {
  const found = bytes.indexOf(mark, from)
  return found < 0 ? UNFINISHED : { kind: 'other', end: found + mark.length }
}

function startsWith(bytes: Buffer, text: string, at: number): boolean {
  return bytes.toString('latin1', at, at + text.length) === text
}

function readTag(bytes: Buffer, lessThan: number, kind: 'start' | 'end'): Markup {
  const nameStart = lessThan + (kind === 'start' ? 1 : 2)
  let at = nameStart
  while (at < bytes.length && !endsName(bytes[at])) at++
  const name = bytes.toString('latin1', nameStart, at).toLowerCase()
  const attributes = new Map<string, Attribute>()
  for (;;) {
    at = skipSpaces(bytes, at)
    if (at >= bytes.length) return UNFINISHED
    if (bytes[at] === GREATER_THAN) return { kind, name, start: lessThan, end: at + 1, selfClosing: false, attributes }
    if (bytes[at] === SLASH) {
      if (bytes[at + 1] === GREATER_THAN) {
        return { kind, name, start: lessThan, end: at + 2, selfClosing: true, attributes }
      }
      at++
      continue
    }
    const attribute = readAttribute(bytes, at)
    if (!attribute) return UNFINISHED
    const { value, end } = attribute
    if (value && !attributes.has(value.name)) attributes.set(value.name, value)
    at = end
  }
}

/** Without a value when it will not be asked for. */
function readAttribute(bytes: Buffer, from: number): { value: Attribute | undefined; end: number } | undefined {
  // A `=` in first place belongs to the name.
  let at = from + 1
  while (at < bytes.length && !endsName(bytes[at]) && bytes[at] !== EQUALS) at++
  const name = knownName(bytes, from, at)
  const known = (value: Omit<Attribute, 'name'>): Attribute | undefined =>
    name === undefined ? undefined : { name, ...value }
  const afterName = skipSpaces(bytes, at)
  if (bytes[afterName] !== EQUALS) return { value: known({ start: 0, end: 0, quoted: false }), end: afterName }
  const valueStart = skipSpaces(bytes, afterName + 1)
  const quote = bytes[valueStart]
  if (quote === DOUBLE_QUOTE || quote === SINGLE_QUOTE) {
    const close = bytes.indexOf(quote, valueStart + 1)
    if (close < 0) return undefined
    return { value: known({ start: valueStart + 1, end: close, quoted: true }), end: close + 1 }
  }
  let valueEnd = valueStart
  while (valueEnd < bytes.length && !isSpace(bytes[valueEnd]) && bytes[valueEnd] !== GREATER_THAN) valueEnd++
  return { value: known({ start: valueStart, end: valueEnd, quoted: false }), end: valueEnd }
}

function knownName(bytes: Buffer, from: number, to: number): string | undefined {
  if (to - from > LONGEST_KNOWN_ATTRIBUTE) return undefined
  const name = bytes.toString('latin1', from, to).toLowerCase()
  return KNOWN_ATTRIBUTES.has(name) ? name : undefined
}

function skipSpaces(bytes: Buffer, from: number): number {
  let at = from
  while (isSpace(bytes[at])) at++
  return at
}

/** Finds the end tag of a raw text or RCDATA element whose content starts at `from`; undefined when it never ends. */
export function findRawTextEnd(bytes: Buffer, name: string, from: number): Tag | undefined {
  const lessThan = name === 'script' ? findScriptEnd(bytes, from) : findEndTag(bytes, name, from)
  if (lessThan === undefined) return undefined
  const tag = readTag(bytes, lessThan, 'end')
  return tag.kind === 'end' ? tag : undefined
}

function findEndTag(bytes: Buffer, name: string, from: number): number | undefined {
  for (let at = bytes.indexOf('</', from); at >= 0; at = bytes.indexOf('</', at + 2)) {
    if (isWordAt(bytes, name, at + 2)) return at
  }
  return undefined
}

/** `name` stands here, in any case, and ends here. */
function isWordAt(bytes: Buffer, name: string, at: number): boolean {
  return endsName(bytes[at + name.length]) && bytes.toString('latin1', at, at + name.length).toLowerCase() === name
}

/**
 * Script data states: inside `<!-- … -->` a nested `<script` hides the next `</script`.
 * `plain` → `escaped` at `<!--`; `escaped` → `double` at `<script`; `double` → `escaped` at `</script`; both → `plain` at `-->`.
 */
function findScriptEnd(bytes: Buffer, from: number): number | undefined {
  let state: 'plain' | 'escaped' | 'double' = 'plain'
  // A comment ends between two `<`, so that each byte is looked at once.
  let searched = from
  for (let at = bytes.indexOf(LESS_THAN, from); at >= 0; at = bytes.indexOf(LESS_THAN, at + 1)) {
    if (state !== 'plain' && bytes.subarray(searched, at).includes('-->')) state = 'plain'
    searched = at
    if (bytes[at + 1] === SLASH && isWordAt(bytes, 'script', at + 2)) {
      if (state !== 'double') return at
      state = 'escaped'
    } else if (state === 'plain' && startsWith(bytes, '<!--', at)) {
      // The dashes that open it may also close it: `<!-->`. Without an end the rest of the document is escaped.
      state = 'escaped'
    } else if (state === 'escaped' && isWordAt(bytes, 'script', at + 1)) {
      state = 'double'
    }
  }
  return undefined
}
