/**
 * Style sheet and scripts, made once at start: every file gets the hash
 * of its content in its name, and a browser may keep the answer for ever.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress } from 'node:zlib'
import { FAVICON_SVG } from '../../../../shared/pages/brand.ts'
import { baseCss, compact, controlsCss, tokensCss } from '../../../../shared/pages/design.ts'
import { readPlainScript } from '../../../../shared/pages/plain-script.ts'
import { paletteCss, type Logo, type Look } from '../../../../shared/pages/look.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { paramsOf, type Reply, type Route } from '../../../ground/http/route.ts'

const PATH = '/assets/:file'
const SOURCES = path.join(import.meta.dirname, '../browser')
/** What the edge's pages run too. */
const SHARED_SOURCES = path.join(import.meta.dirname, '../../../../shared/pages/browser')

/** One file per concern in browser/styles/, sent as one in this order: later rules win over earlier ones. */
const STYLES = [
  'frame',
  'layout',
  'surfaces',
  'navigation',
  'tables',
  'publish-form',
  'publish-result',
  'forms',
  'charts',
  'docs',
  'landing',
  'review',
]

interface Asset {
  readonly type: string
  readonly body: string | Buffer
}

export interface Assets {
  /** Address of the style sheet. */
  readonly style: string
  readonly icon: string
  /** Address of the operator's logo, where there is one. */
  readonly logo: string | undefined
  /** Address of the picture that messengers show beside a link, 1200 × 630. */
  readonly socialImage: string
  /** Address of a script by the name of its source, e.g. `landing`. */
  script(name: string): string
  /** Addresses of all modules that a script imports, and those import. */
  imports(name: string): readonly string[]
  readonly routes: Route[]
}

export function loadAssets(look: Look): Assets {
  const files = new Map<string, Asset>()
  const add = (name: string, extension: string, type: string, body: string | Buffer): string => {
    const file = `${name}.${createHash('sha256').update(body).digest('hex').slice(0, 12)}.${extension}`
    files.set(file, { type, body })
    return `/assets/${file}`
  }
  const { scripts, imported } = addScripts((name, body) => add(name, 'js', 'text/javascript; charset=utf-8', body))
  const own = STYLES.map((name) => readFileSync(path.join(SOURCES, 'styles', `${name}.css`), 'utf8'))
  const css = compact(tokensCss + baseCss + controlsCss + own.join('')) + paletteCss(look)
  const { logo } = look
  const logoAddress = logo && add('logo', logo.type === 'image/png' ? 'png' : 'svg', logo.type, logo.bytes)
  return {
    style: add('dashboard', 'css', 'text/css; charset=utf-8', css),
    icon: logoAddress ?? add('icon', 'svg', 'image/svg+xml', FAVICON_SVG),
    logo: logoAddress,
    socialImage: add('social', 'png', 'image/png', readFileSync(path.join(SOURCES, 'social.png'))),
    script(name) {
      const address = scripts.get(name)
      if (address === undefined) throw new Error(`There is no script ${name}.ts`)
      return address
    },
    imports: (name) => imported.get(name) ?? [],
    routes: [assetRoute(files), iconRoute(logo)],
  }
}

/**
 * Adds each page's script after the modules it imports, so that its imports can name their hashed addresses.
 * A script is known by the name of its file, without the ending.
 */
function addScripts(add: (name: string, body: string) => string): {
  scripts: ReadonlyMap<string, string>
  imported: ReadonlyMap<string, readonly string[]>
} {
  const addresses = new Map<string, string>()
  const imports = new Map<string, readonly string[]>()
  const addScript = (file: string): string => {
    const name = path.basename(file, '.ts')
    const known = addresses.get(name)
    if (known !== undefined) return known
    const needed = new Set<string>()
    const body = readPlainScript(file).replace(
      /(\bfrom\s*)'(\.\.?\/[\w./-]+\.ts)'/g,
      (_match, from: string, imported: string) => {
        const module = addScript(path.join(path.dirname(file), imported))
        for (const each of [module, ...(imports.get(path.basename(imported, '.ts')) ?? [])]) needed.add(each)
        return `${from}'${module}'`
      },
    )
    const address = add(name, body)
    addresses.set(name, address)
    imports.set(name, [...needed])
    return address
  }
  for (const folder of [SOURCES, SHARED_SOURCES])
    for (const file of readdirSync(folder)) if (file.endsWith('.ts')) addScript(path.join(folder, file))
  return { scripts: addresses, imported: imports }
}

/** An SVG that is opened by itself is a document: it may run and load nothing. */
const PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

/** Asked for by programs that do not read the page. */
const iconRoute = (logo: Logo | undefined): Route => ({
  method: 'GET',
  path: '/favicon.ico',
  handle: () => ({
    status: 200,
    headers: {
      'content-type': logo?.type ?? 'image/svg+xml',
      'cache-control': 'public, max-age=86400',
      'content-security-policy': PICTURE_POLICY,
    },
    body: logo?.bytes ?? FAVICON_SVG,
  }),
})

function assetRoute(files: ReadonlyMap<string, Asset>): Route {
  const compressed = new Map<string, Promise<Buffer>>()
  const compress = promisify(brotliCompress)
  return {
    method: 'GET',
    path: PATH,
    async handle(request): Promise<Reply> {
      const name = paramsOf(PATH, request).file
      const asset = files.get(name)
      if (!asset) throw errors.notFound('file')
      const headers = {
        'content-type': asset.type,
        'cache-control': 'public, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
        vary: 'accept-encoding',
        ...(asset.type === 'image/svg+xml' ? { 'content-security-policy': PICTURE_POLICY } : {}),
      }
      // A picture is compressed already.
      if (Buffer.isBuffer(asset.body) || !/\bbr\b/.test(request.header('accept-encoding') ?? ''))
        return { status: 200, headers, body: asset.body }
      let body = compressed.get(name)
      if (!body) compressed.set(name, (body = compress(asset.body)))
      return { status: 200, headers: { ...headers, 'content-encoding': 'br' }, body: await body }
    },
  }
}
