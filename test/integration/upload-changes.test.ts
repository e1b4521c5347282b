/** An upload that says what changed of the live version gives what the whole list would have given, whatever changed. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PreparedVersion, Publishing, SecretsPolicy } from '../../control/drops/publishing/contract.ts'
import { blobSizesOf } from '../../control/drops/publishing/manifest/manifest-builder.ts'
import { uploadedFiles } from '../../control/drops/sites/versions/uploaded-files.ts'
import { SEED } from '../support/depth.ts'
import { startPublishing, type PublishingFixture } from '../support/publishing.ts'
import { createRandom, type Random } from '../support/random.ts'

const LIMITS = { owner: { kind: 'organisation', id: 'org' }, capBytes: 10_000_000 } as const
const KEY = `-----BEGIN PRIVATE KEY-----\n${'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7'.repeat(4)}\n-----END PRIVATE KEY-----\n`

interface Site {
  readonly publishing: Publishing
  base: string | undefined
}

let fixture: PublishingFixture
let rival: PublishingFixture
beforeAll(async () => {
  ;[fixture, rival] = await Promise.all([startPublishing(), startPublishing()])
})
afterAll(() => Promise.all([fixture.close(), rival.close()]))

const NAMES = [
  ...['index.html', 'index.md', 'about.html', 'a/b.html', 'a/b/c.html', 'blog/one.html', 'blog/two.html', 'Über.html'],
  ...['app.css', 'a/app.css', 'app.js', 'data.json', 'note.txt', 'logo.svg', 'font.ttf', 'photo.png', 'paper.pdf'],
  ...['assets/index-Bq3xY_9Z.js', 'assets/index-C7dK2mPa.css', 'assets/logo-D0aF81xQ.svg', 'js/main.4f3d2a1b.js'],
  ...['_redirects', '_headers', 'vercel.json', '.env', 'key.pem', 'dump.sql', '.dropway/x.txt', '.DS_Store'],
  ...['package.json', 'dist/index.html', 'utf16.html', 'plain/1.txt', 'plain/2.txt', 'plain/3.txt', 'plain/4.txt'],
]
/** How often something is wrong with a content, and how often a file goes. */
interface Trouble {
  readonly names: readonly string[]
  readonly chance: number
  readonly removed: number
}

const TROUBLED: Trouble = { names: NAMES, chance: 0.04, removed: 0.2 }
const QUIET_NAMES = NAMES.filter((name) =>
  /^(?:index\.html|about|a\/b|blog|Über|app|a\/app|data|note|plain|photo)/.test(name),
)
const QUIET: Trouble = { names: QUIET_NAMES, chance: 0.003, removed: 0.02 }

/** Pages lead to each other, and load code; now and then a content is another file's, or holds a key. */
function contentOf(random: Random, name: string, names: readonly string[], { chance }: Trouble): Buffer {
  const words = Array.from({ length: random.between(2, 60) }, () => `word${random.below(500)}`).join(' ')
  if (name === '_redirects')
    return Buffer.from(`/old${random.below(3)} /about 301\n${random.chance(0.3) ? 'nonsense' : ''}`)
  if (name === '_headers') return Buffer.from(`/*\n  x-a: ${random.below(3)}\n`)
  if (name === 'vercel.json') return Buffer.from('{"cleanUrls":true}')
  if (name === 'key.pem' || random.chance(chance)) return Buffer.from(random.chance(0.7) ? KEY : 'a certificate')
  if (name === 'utf16.html') return Buffer.from(`\ufeff<title>${words}</title>`, 'utf16le')
  const link = `/${random.chance(chance) ? 'nowhere.html' : random.pick(names)}`
  if (name.endsWith('.css')) return Buffer.from(`a { color: red } /* ${words} */ b { background: url(${link}) }`)
  if (!name.endsWith('.html')) return Buffer.from(random.chance(0.2) ? 'the same everywhere' : words)
  const code = names.filter((each) => /\.(?:js|css)$/.test(each) && random.chance(0.3))
  const loads = code.map((each) =>
    each.endsWith('.js') ? `<script type=module src=/${each}></script>` : `<link rel=stylesheet href=/${each}>`,
  )
  return Buffer.from(`<!doctype html><title>${name}</title>${loads.join('')}<a href="${link}">x</a><p>${words}`)
}

type Files = Map<string, { readonly hash: string; readonly size: number }>

async function store(random: Random, name: string, names: readonly string[], trouble: Trouble) {
  const bytes = contentOf(random, name, names, trouble)
  await Promise.all([fixture.blobs.put(bytes), rival.blobs.put(bytes)])
  return { hash: createHash('sha256').update(bytes).digest('hex'), size: bytes.length }
}

async function change(random: Random, files: Files, trouble: Trouble): Promise<void> {
  for (let changes = random.between(0, 3); changes > 0; changes--) {
    const name = random.pick(trouble.names)
    if (random.chance(trouble.removed)) files.delete(name)
    else files.set(name, await store(random, name, [...files.keys(), name], trouble))
  }
}

const byName = (files: Files) =>
  [...files].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([path, file]) => ({ path, ...file }))

type Published = Omit<PreparedVersion, 'blobs' | 'changes'> & {
  readonly blobs: ReadonlySet<string>
  readonly changes: { readonly added: ReadonlySet<string>; readonly gone: ReadonlySet<string> }
}
type Outcome = Published | { refused: unknown }

async function outcomeOf(work: () => Promise<PreparedVersion>): Promise<Outcome> {
  try {
    const prepared = await work()
    const { added = [], gone = [] } = prepared.changes ?? {}
    return { ...prepared, blobs: new Set(prepared.blobs()), changes: { added: new Set(added), gone: new Set(gone) } }
  } catch (error) {
    return { refused: (error as Error).message }
  }
}

function publishWhole({ publishing, base }: Site, files: Files, secrets: SecretsPolicy): Promise<Outcome> {
  return outcomeOf(async () => {
    const intake = publishing.receive({ ...LIMITS, base })
    publishing.checkPaths(byName(files).map(({ path }) => path))
    for (const { path, hash, size } of byName(files)) await intake.addStored(path, hash, size)
    return intake.finish({ secrets })
  })
}

function publishChanges({ publishing, base }: Site, files: Files, secrets: SecretsPolicy): Promise<Outcome> {
  return outcomeOf(async () => {
    const live = uploadedFiles(base === undefined ? undefined : await publishing.readManifest(base))
    const isSame = (path: string): boolean => live.get(path)?.hash === files.get(path)?.hash
    const without = new Set([...live.keys()].filter((path) => !isSame(path)))
    const staying = [...live].filter(([path]) => !without.has(path))
    const intake = publishing.receive({ ...LIMITS, base })
    publishing.checkPaths(byName(files).map(({ path }) => path))
    await intake.addChanges({
      files: byName(files).filter(({ path }) => !live.has(path) || without.has(path)),
      without,
      staying: { files: staying.length, bytes: staying.reduce((sum, [, { size }]) => sum + size, 0) },
    })
    return intake.finish({ secrets })
  })
}

/** Both sites go the same way: a version that is refused leaves the one before live. */
async function compressed({ publishing, base }: Site): Promise<string | undefined> {
  let hash = base
  if (base !== undefined)
    for await (const { smaller } of publishing.compress(base, null)) hash = smaller?.manifestHash ?? hash
  return hash
}

/** What is needed after a change: nothing goes that was not there, and nothing comes that was. */
function changed(before: ReadonlySet<string>, { added, gone }: Published['changes']): ReadonlySet<string> {
  expect([...gone].every((hash) => before.has(hash)) && ![...added].some((hash) => before.has(hash))).toBe(true)
  return new Set([...before, ...added].filter((hash) => !gone.has(hash)))
}

/** Resolves to how often the version before was known. */
async function walk(seed: number, trouble: Trouble, steps: number): Promise<number> {
  const random = createRandom(seed)
  const whole: Site = { publishing: fixture.publishing, base: undefined }
  const short: Site = { publishing: rival.publishing, base: undefined }
  const files: Files = new Map()
  const first = ['index.html', ...trouble.names.filter(() => random.chance(0.6))]
  for (const name of first) files.set(name, await store(random, name, first, trouble))
  let known = 0
  let needed: ReadonlySet<string> | undefined
  for (let step = 0; step < steps; step++) {
    const secrets = random.pick(['withhold', 'withhold', 'refuse', 'allow'] as const)
    const expected = await publishWhole(whole, files, secrets)
    if (short.base !== undefined && rival.publishing.hasChecked(short.base)) known++
    expect(await publishChanges(short, files, secrets), `seed ${seed}, step ${step}`).toEqual(expected)
    if ('manifestHash' in expected) {
      const { manifestHash, blobs, changes } = expected
      if (needed) expect(changed(needed, changes), `seed ${seed}, step ${step}`).toEqual(blobs)
      whole.base = short.base = manifestHash
      needed = blobs
    }
    if (random.chance(0.2)) {
      ;[whole.base, short.base] = [await compressed(whole), await compressed(short)]
      expect(short.base).toBe(whole.base)
      needed &&= new Set(blobSizesOf(await whole.publishing.readManifest(whole.base!)).keys()).add(whole.base!)
    }
    await change(random, files, trouble)
  }
  return known
}

const WALKS = [1, 2, 3, 4].map((walked) => 10 * SEED + walked)

test.each(WALKS)('sites with all that can be said about them, seed %i', async (seed) => {
  await walk(seed, TROUBLED, 10)
})

test('sites about which there is nothing to say are known, and the same too', async () => {
  let known = 0
  for (const seed of WALKS) known += await walk(seed, QUIET, 15)
  expect(known).toBeGreaterThan(0)
})
