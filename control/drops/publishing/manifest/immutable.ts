/**
 * Which files of a version browsers may keep for a year without asking again. A wrong answer cannot be taken back: a
 * visitor who has the file keeps it, reload or not. So a name alone is never enough; it must be known that the name
 * changes when the content does:
 *
 * 1. The name holds at least eight characters of the file's own SHA-256. Nothing is guessed.
 * 2. The file lies in a folder that a generator fills with hashed names, and every name in that folder has a hash of the
 *    generator's form. One ordinary name (`logo.png`, `photo-20240101.jpg`) and the whole folder is asked for again.
 *    a. Folders that only a generator makes (`_next/static/chunks`, `_nuxt`, `_astro`, `_app/immutable`, …) need no more
 *       than that, apart from a few turns in their hashes that words lack, since a hash can be switched off.
 *    b. Folders that people make too (`assets`, `static/js`, `js`, …) also need a page that loads a hashed script or
 *       stylesheet from there, and hashes that are no labels: no two different files share one, and together they
 *       are as mixed as only random characters are.
 *
 * Rule 2 is wrong only where a person puts a file of their own into such a folder, under a name with a random part like
 * those of its neighbours, and later changes the content without the name. Everything else, pages above all, is asked
 * for at every visit, unless `_headers` says otherwise. Pure; linear in the names.
 */
import { isHtmlType, mediaTypeOf } from '../files/types.ts'

export interface NamedFile {
  readonly path: string
  /** SHA-256 of what is served, in hex. */
  readonly hash: string
}

/** What the pages of the version load, by path. */
export interface LoadedCode {
  readonly scripts: ReadonlySet<string>
  /** Scripts of `type=module`, and what is preloaded as such. */
  readonly modules: ReadonlySet<string>
  readonly styles: ReadonlySet<string>
}

export const NOTHING_LOADED: LoadedCode = { scripts: new Set(), modules: new Set(), styles: new Set() }

/** Fewer characters of a hash are a word, a date or a number too often. */
const MIN_HASH_CHARS = 8

export function immutablePaths(files: readonly NamedFile[], loaded: LoadedCode): ReadonlySet<string> {
  const found = new Set<string>()
  const folders = new Map<string, NamedFile[]>()
  for (const file of files) {
    if (holdsOwnHash(file)) found.add(file.path)
    const folder = folderOf(file.path)
    const members = folders.get(folder)
    if (members) members.push(file)
    else folders.set(folder, [file])
  }
  const roots = loadedRoots(folders, loaded)
  for (const [folder, members] of folders)
    if (isHashedFolder(folder, members, roots, loaded)) for (const { path } of members) found.add(path)
  for (const path of found) if (isHtmlType(mediaTypeOf(path))) found.delete(path)
  return found
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** Whether a file lies where rule 2 may hold for it: what becomes of it depends on the names beside it. */
export function liesInHashedFolder(path: string): boolean {
  const folder = folderOf(path)
  return [...OWN_FOLDERS, ...SHARED_FOLDERS].some((each) => each.folder.test(folder))
}

// Rule 1

export function holdsOwnHash({ path, hash }: NamedFile): boolean {
  const name = nameOf(path)
  if (name.length < MIN_HASH_CHARS) return false
  if (holdsPrefix(name, hash)) return true
  if (name.includes(firstOfBase64(hash)) && holdsPrefix(name, Buffer.from(hash, 'hex').toString('base64url')))
    return true
  // To write a number in other bases takes a while, and no word is the beginning of one.
  if (!name.split(/[._-]/).some(mayBeNumber)) return false
  const number = BigInt(`0x${hash}`)
  return BASES.some((base) => name.includes(firstDigits(number, base)) && holdsPrefix(name, allDigits(number, base)))
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** The first two characters: hardly a name has them, and all of it takes ten times as long. */
function firstOfBase64(hash: string): string {
  const bits = Number.parseInt(hash.slice(0, 3), 16)
  return BASE64.charAt(bits >> 6) + BASE64.charAt(bits & 63)
}

function mayBeNumber(token: string): boolean {
  return token.length >= MIN_HASH_CHARS && (/\d/.test(token) || (/[a-z]/.test(token) && /[A-Z]/.test(token)))
}

const DIGITS = '0123456789'
const LOWER = 'abcdefghijklmnopqrstuvwxyz'
const UPPER = LOWER.toUpperCase()

interface Base {
  readonly digits: string
  /** Leaves the first eight digits of a number of 256 bits. */
  readonly divisor: bigint
}

/** A SHA-256 as a number: base36, and base62 with its letters in either order. */
const BASES: readonly Base[] = [DIGITS + LOWER, DIGITS + LOWER + UPPER, DIGITS + UPPER + LOWER].map((digits) => {
  const length = Math.ceil(256 / Math.log2(digits.length))
  return { digits, divisor: BigInt(digits.length) ** BigInt(length - MIN_HASH_CHARS) }
})

/** The first eight, or seven where the number has a digit less than most: as many must stand in the name. */
function firstDigits(number: bigint, { digits, divisor }: Base): string {
  let text = ''
  for (let rest = Number(number / divisor); rest > 0; rest = Math.floor(rest / digits.length))
    text = digits.charAt(rest % digits.length) + text
  return text
}

function allDigits(number: bigint, { digits }: Base): string {
  const base = BigInt(digits.length)
  let text = ''
  for (let rest = number; rest > 0n; rest /= base) text = digits.charAt(Number(rest % base)) + text
  return text
}

/** At least eight characters of `hash`, from its first on, stand between `.`, `-`, `_` and the ends of the name. */
function holdsPrefix(name: string, hash: string): boolean {
  const shortest = hash.slice(0, MIN_HASH_CHARS)
  for (let start = name.indexOf(shortest); start >= 0; start = name.indexOf(shortest, start + 1)) {
    if (start > 0 && !isSeparator(name[start - 1])) continue
    let end = start + MIN_HASH_CHARS
    for (; end < name.length; end++) {
      // The hash itself may go on with a separator.
      if (isSeparator(name[end])) return true
      if (name[end] !== hash[end - start]) break
    }
    if (end === name.length) return true
  }
  return false
}

function isSeparator(char: string | undefined): boolean {
  return char === '.' || char === '-' || char === '_'
}

// Rule 2

/** How a generator writes its hashes. */
type Form =
  /** Eight characters of base64url at the end of the name, or as all of it (Rollup, and so Vite and what builds on it). */
  | 'eight'
  /** Thirteen small letters, digits, `-` and `_` at the end of the name, or as all of it (Turbopack of Next 16). */
  | 'thirteen'
  /** At least eight characters of hex between separators (webpack, Turbopack, Metro). */
  | 'hex'
  /** The same, at the end of the name. */
  | 'hex at end'

/** Folders that no person makes. */
const OWN_FOLDERS: readonly { readonly folder: RegExp; readonly form: Form }[] = [
  // Next. `_next/static/<build>` is not among them: its names have no hash, and a build can be given any name.
  { folder: /(?:^|\/)_next\/static\/(?:chunks|css|media)(?:\/|$)/, form: 'hex' },
  { folder: /(?:^|\/)_next\/static\/(?:chunks|media)(?:\/|$)/, form: 'thirteen' },
  // Nuxt. `_nuxt/builds` is not among them: `latest.json` changes.
  { folder: /(?:^|\/)_nuxt$/, form: 'eight' },
  { folder: /(?:^|\/)_astro$/, form: 'eight' },
  // SvelteKit
  { folder: /(?:^|\/)_app\/immutable(?:\/|$)/, form: 'eight' },
  // Expo
  { folder: /(?:^|\/)_expo\/static\/(?:js|css)(?:\/|$)/, form: 'hex' },
]

/**
 * Folders that people make too. `root` holds the folders of one generator: one of them has the script or stylesheet
 * that a page loads.
 */
const SHARED_FOLDERS: readonly { readonly folder: RegExp; readonly form: Form }[] = [
  // Vite, VitePress, React Router, SolidStart
  { folder: /^(?<root>(?:.*\/)?assets)(?:\/chunks)?$/, form: 'eight' },
  // Qwik
  { folder: /^(?<root>(?:.*\/)?build)$/, form: 'eight' },
  // Ember, and Vite before its fifth version
  { folder: /^(?<root>(?:.*\/)?assets)$/, form: 'hex at end' },
  // Create React App, Rsbuild
  { folder: /^(?<root>(?:.*\/)?static)\/(?:js|css|media|font|image|svg|wasm)(?:\/async)?$/, form: 'hex at end' },
  // Docusaurus, Gridsome
  { folder: /^(?<root>(?:.*\/)?assets)\/(?:js|css|images|img|files|medias|fonts)$/, form: 'hex at end' },
  // Material for MkDocs
  { folder: /^(?<root>(?:.*\/)?assets)\/(?:javascripts(?:\/workers)?|stylesheets)$/, form: 'hex at end' },
  // Vue CLI
  { folder: /^(?<root>(?:.*\/)?)(?:js|css|img|fonts|media)$/, form: 'hex at end' },
]

interface Hashed {
  /** The name up to its hash: a script, its map and its licences share it. */
  readonly stem: string
  readonly part: string
  /** Hash of the content. */
  readonly content: string
}

function isHashedFolder(
  folder: string,
  members: readonly NamedFile[],
  roots: ReadonlySet<string>,
  { modules, styles }: LoadedCode,
): boolean {
  const own = OWN_FOLDERS.filter((each) => each.folder.test(folder))
  if (own.length > 0) return own.some(({ form }) => isOwnHashed(hashedNames(members, form), form))
  return SHARED_FOLDERS.some((shared) => {
    const root = rootIn(shared, folder)
    if (root === undefined || (shared.form !== 'eight' && !roots.has(root))) return false
    const hashed = hashedNames(members, shared.form)
    if (hashed === undefined || !areNoLabels(hashed)) return false
    if (shared.form !== 'eight') return isHex(hashed)
    return isMixed(hashed) && members.some(({ path }) => modules.has(path) || styles.has(path))
  })
}

/** Whether a folder that only a generator makes holds hashes, and no words in their places. */
function isOwnHashed(hashed: readonly Hashed[] | undefined, form: Form): boolean {
  if (hashed === undefined) return false
  return form === 'eight' || form === 'thirteen' ? turnsOf(hashed) >= OWN_TURNS[form] * stemsOf(hashed) : isHex(hashed)
}

/** Names the folders of one generator; undefined when this one is none of them. */
function rootIn({ folder: pattern }: (typeof SHARED_FOLDERS)[number], folder: string): string | undefined {
  const root = pattern.exec(folder)?.groups?.['root']
  return root === undefined ? undefined : `${pattern.source} ${root}`
}

/** Those from whose folders a page loads scripts or stylesheets with hashes of hex, more than one and no labels. */
function loadedRoots(
  folders: ReadonlyMap<string, readonly NamedFile[]>,
  { scripts, modules, styles }: LoadedCode,
): ReadonlySet<string> {
  const hashedIn = new Map<string, Hashed[]>()
  for (const folder of new Set([...scripts, ...modules, ...styles].map(folderOf))) {
    const hashed = hashedNames(folders.get(folder) ?? [], 'hex at end')
    if (hashed === undefined || hashed.length === 0 || !isHex(hashed)) continue
    for (const shared of SHARED_FOLDERS) {
      const root = shared.form === 'eight' ? undefined : rootIn(shared, folder)
      if (root !== undefined) hashedIn.set(root, [...(hashedIn.get(root) ?? []), ...hashed])
    }
  }
  const isTold = (hashed: readonly Hashed[]): boolean =>
    areNoLabels(hashed) && new Set(hashed.map(({ part }) => part)).size > 1
  return new Set([...hashedIn].filter(([, hashed]) => isTold(hashed)).map(([root]) => root))
}

/** Each name with its hash; undefined when one of them has none. */
function hashedNames(members: readonly NamedFile[], form: Form): Hashed[] | undefined {
  const hashed: Hashed[] = []
  for (const { path, hash } of members) {
    const found = FORMS[form](nameOf(path))
    if (!found) return undefined
    hashed.push({ ...found, content: hash })
  }
  return hashed
}

/** `main.4f3d2a1b.chunk.js.map` → `main.4f3d2a1b`: without what says of which kind the file is. */
function withoutEndings(name: string): string {
  return name
    .replace(/\.LICENSE\.txt$/, '')
    .replace(/\.map$/, '')
    .replace(/\.[A-Za-z0-9]{1,11}$/, '')
    .replace(/\.(?:min|chunk|bundle|module|esm|worker|lean)$/, '')
}

type Part = Pick<Hashed, 'stem' | 'part'>

/** Behind an image's hash Astro writes a second one, of how the image was made smaller. */
function eightIn(name: string): Part | undefined {
  const stem = withoutEndings(name)
  const match = /^(?:.*[.-])?([A-Za-z0-9_-]{8})$/.exec(stem) ?? /^.+\.([A-Za-z0-9_-]{8})_[A-Za-z0-9]{4,8}$/.exec(stem)
  return match?.[1] === undefined ? undefined : { stem, part: match[1] }
}

function thirteenIn(name: string): Part | undefined {
  const stem = withoutEndings(name)
  const part = /^(?:.*[.-])?([0-9a-z_-]{13})$/.exec(stem)?.[1]
  return part === undefined ? undefined : { stem, part }
}

/** The last one: Docusaurus writes `17896441.4f3d2a1b.js`, Next `4473ecc91f70f139-s.p.woff2`. */
function hexIn(name: string): Part | undefined {
  const stem = withoutEndings(name)
  const part = stem.split(/[._-]/).findLast(isHexToken)
  return part === undefined ? undefined : { stem, part }
}

function hexAtEnd(name: string): Part | undefined {
  const stem = withoutEndings(name)
  const part = stem.split(/[._-]/).at(-1)
  return part === undefined || !isHexToken(part) ? undefined : { stem, part }
}

function isHexToken(token: string): boolean {
  return /^[0-9a-f]{8,64}$/.test(token)
}

const FORMS: Readonly<Record<Form, (name: string) => Part | undefined>> = {
  eight: eightIn,
  thirteen: thirteenIn,
  hex: hexIn,
  'hex at end': hexAtEnd,
}

/** Numbers are rare among hashes of hex, one in 43 of eight characters; words of these six letters are rarer. */
const MAX_ONE_SIDED = 0.05
/** As many hashes with digits and letters say what the others are. */
const MIN_TELLING = 4

/** The share of places between two characters that turn from digit to letter or back, at least; in random ones it is half. */
const HEX_TURNS = 0.27

/** Digits and letters in nearly all of them and well mixed, no date, and no length of their own for those without. */
function isHex(hashed: readonly Hashed[]): boolean {
  const places = [...new Map(hashed.map(({ stem, part }) => [stem, part.length - 1])).values()]
  if (turnsOf(hashed) < HEX_TURNS * places.reduce((sum, count) => sum + count, 0)) return false
  const isTelling = ({ part }: Hashed): boolean => /\d/.test(part) && /[a-f]/.test(part)
  const telling = hashed.filter(isTelling)
  const others = hashed.filter((each) => !isTelling(each))
  if (others.length === 0) return true
  const lengths = new Set(telling.map(({ part }) => part.length))
  return (
    telling.length >= MIN_TELLING &&
    others.length <= Math.max(1, MAX_ONE_SIDED * hashed.length) &&
    others.every(({ part }) => lengths.has(part.length) && !looksLikeDate(part))
  )
}

/** `20240501`, `05012024`, `202405011230`: of this or the last century. */
function looksLikeDate(part: string): boolean {
  return /^(?:19|20)\d{6}/.test(part) || /^[0-3]\d[0-3]\d(?:19|20)\d\d/.test(part)
}

/** A release, a day or a commit that people write into names stands in several names; a hash is of one content. */
function areNoLabels(hashed: readonly Hashed[]): boolean {
  const owners = new Map<string, Hashed>()
  for (const one of hashed) {
    const other = owners.get(one.part)
    if (!other) owners.set(one.part, one)
    else if (other.stem !== one.stem && other.content !== one.content) return false
  }
  return true
}

function stemsOf(hashed: readonly Hashed[]): number {
  return new Set(hashed.map(({ stem }) => stem)).size
}

const TURNS: ReadonlySet<string> = new Set(['a1', 'la', 'l1', '1a', '1l'])

/**
 * Where a lower-case letter, a capital or a digit follows another of these kinds, a word that begins with a capital
 * aside. Eight random characters of base64url turn three times; `Q4-final`, `MyHeader` and `IMG_2041` once or not
 * at all, `2024Q4v2` four times.
 */
function turnsOf(hashed: readonly Hashed[]): number {
  const parts = new Map(hashed.map(({ stem, part }) => [stem, part]))
  let turns = 0
  for (const part of parts.values())
    for (let at = 1; at < part.length; at++)
      if (TURNS.has(kindOf(part.charAt(at - 1)) + kindOf(part.charAt(at)))) turns++
  return turns
}

/** `a` capital, `l` lower case, `1` digit; blank for `-` and `_`, with which people separate words. */
function kindOf(char: string): 'a' | 'l' | '1' | ' ' {
  if (LOWER.includes(char)) return 'l'
  if (UPPER.includes(char)) return 'a'
  return DIGITS.includes(char) ? '1' : ' '
}

/** Turns of each name in a folder that only a generator makes; in thirteen random characters it is four. */
const OWN_TURNS = { eight: 1.5, thirteen: 2.5 }
/** Turns of each name in a folder that people make too, and of a name that is alone in one. */
const SHARED_TURNS = 1.6
const SINGLE_TURNS = 5
/** Shares of all characters: random ones are 16 % digits, 41 % capitals and 41 % small letters. */
const MIN_DIGITS = 0.04
const MAX_DIGITS = 0.45
const MIN_LETTERS = 0.15
/** The share of vowels, at most: random letters have 19 %, words of any language more than a third. */
const MAX_VOWELS = 0.3
/** `MyApp2v1` and `MyApp2v2`, dates, words and article numbers are built alike; of random hashes hardly any two are. */
const MIN_DIFFERENT = 0.8

function isMixed(hashed: readonly Hashed[]): boolean {
  const stems = stemsOf(hashed)
  if (turnsOf(hashed) < (stems === 1 ? SINGLE_TURNS : SHARED_TURNS * stems)) return false
  const parts = [...new Set(hashed.map(({ part }) => part))]
  const built = parts.map((part) => Array.from(part, kindOf).join(''))
  const kinds = built.join('')
  const [digits = 0, capitals = 0, small = 0] = ['1', 'a', 'l'].map((kind) => kinds.split(kind).length - 1)
  const vowels = parts.join('').split(/[aeiou]/i).length - 1
  return (
    digits >= MIN_DIGITS * kinds.length &&
    digits <= MAX_DIGITS * kinds.length &&
    capitals >= MIN_LETTERS * kinds.length &&
    small >= MIN_LETTERS * kinds.length &&
    vowels <= MAX_VOWELS * (capitals + small) &&
    new Set(built).size >= MIN_DIFFERENT * built.length
  )
}
