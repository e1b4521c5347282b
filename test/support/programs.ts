/** Programs from Debian that tests and benches run, and which test files cannot run without them. */
import { accessSync, constants, existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { IS_DEEP } from './depth.ts'

export interface DebianPackage {
  readonly name: string
  /** Tells that the package is there, and is what tests start. */
  readonly program: string
  /** Packages without a program that are installed with it. */
  readonly with?: readonly string[]
}

/** Browsers that only the deep run looks at. */
const DEEP_PACKAGES: readonly DebianPackage[] = [
  { name: 'firefox-esr', program: 'firefox-esr' },
  { name: 'webkit2gtk-driver', program: 'WebKitWebDriver' },
  { name: 'xvfb', program: 'Xvfb' },
]

/** What builds the image, and renders the chart. */
const IMAGE_PACKAGES: readonly DebianPackage[] = [
  { name: 'buildah', program: 'buildah' },
  { name: 'mmdebstrap', program: 'mmdebstrap' },
  { name: 'iproute2', program: 'ip' },
  {
    name: 'golang-go',
    program: 'go',
    with: ['golang-github-masterminds-sprig-dev', 'golang-k8s-sigs-yaml-dev'],
  },
]

export const PACKAGES: readonly DebianPackage[] = [
  // Without it the service runs on its stand-in; some tests want the real one, or its sentinel.
  { name: 'redis-server', program: 'redis-server' },
  { name: 'chromium-headless-shell', program: 'chromium-headless-shell' },
  { name: 'libnss3-tools', program: 'certutil' },
  { name: 'pebble', program: 'pebble' },
  { name: 'nginx', program: 'nginx' },
  { name: 'caddy', program: 'caddy' },
  { name: 'nghttp2-client', program: 'h2load' },
  { name: 'wrk', program: 'wrk' },
  { name: 'slowhttptest', program: 'slowhttptest' },
  { name: 'testssl.sh', program: 'testssl' },
  { name: 'unzip', program: 'unzip' },
  { name: 'git', program: 'git' },
  { name: 'pgbouncer', program: 'pgbouncer' },
  { name: 'prometheus', program: 'promtool' },
  { name: 'systemd', program: 'systemd-analyze' },
  { name: 'bind9', program: 'named' },
  { name: 'bind9-dnsutils', program: 'nsupdate' },
  ...(IS_DEEP ? DEEP_PACKAGES : []),
  ...(process.env['IMAGE'] === '1' ? IMAGE_PACKAGES : []),
]

/** What `npm run test:pages` runs: all that needs a browser. */
export const PAGES_FILES = ['test/{pages,browser}/*.test.ts']

/** What `npm test` runs, whatever else a deep run does. */
export const EVERYDAY_FILES = ['test/{unit,integration,acceptance,simulation}/**/*.test.ts']

/** What `vitest run` finds: what is judged by a clock, or long, is for `npm run test:deep`. */
export const TEST_FILES = [...EVERYDAY_FILES, ...(IS_DEEP ? ['test/deep/*.test.ts', ...PAGES_FILES] : [])]

/** What `npm run test:operations` runs. */
export const OPERATIONS_FILES = ['test/operations/**/*.test.ts']

/** Some are in directories that an ordinary user's PATH does not name. */
const FOLDERS = [...(process.env['PATH'] ?? '').split(path.delimiter), '/usr/sbin', '/sbin', '/usr/games']

/** Where it is, so that it can be started whatever the PATH names; undefined when it is not installed. */
export function findProgram(program: string): string | undefined {
  return FOLDERS.map((folder) => path.join(folder, program)).find(isExecutable)
}

export function isInstalled(program: string): boolean {
  return findProgram(program) !== undefined
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export function missingPackages(): DebianPackage[] {
  return PACKAGES.filter(({ program }) => !isInstalled(program))
}

/** Test files that need one of these packages, each with the packages it needs. Paths are relative to `root`. */
export function filesInNeedOf(
  packages: readonly DebianPackage[],
  patterns: readonly string[],
  root: string,
): Map<string, DebianPackage[]> {
  const found = new Map<string, DebianPackage[]>()
  if (packages.length === 0) return found
  for (const file of globSync([...patterns], { cwd: root })) {
    const texts = [...textsOf(path.join(root, file))]
    const needed = packages.filter(({ program }) => texts.some((text) => runs(text, program)))
    if (needed.length > 0) found.set(file, needed)
  }
  return found
}

/** Starts it by its name, or by its path. */
function runs(text: string, program: string): boolean {
  return new RegExp(`\\(\\s*'${program}'`).test(text) || text.includes(`/bin/${program}'`)
}

/** A file and the support modules that it imports, directly or not. The sources of the service find programs themselves. */
function* textsOf(file: string, seen = new Set<string>()): Generator<string> {
  if (seen.has(file) || !existsSync(file)) return
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  yield text
  for (const [, target] of text.matchAll(/from '(\.[^']*\/support\/[^']+|\.\/[^']+)'/g)) {
    yield* textsOf(path.resolve(path.dirname(file), target!), seen)
  }
}
