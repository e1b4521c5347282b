/**
 * Before the tests: installs what they need from Debian, where that is possible (root and apt).
 * Elsewhere it lists what is missing. In CI (`CI=true`) something missing is a failure.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import path from 'node:path'

/** Package → a program that tells that it is there, and who needs it. */
const PACKAGES: readonly { readonly name: string; readonly program: string; readonly neededBy: string }[] = [
  { name: 'redis-server', program: 'redis-server', neededBy: 'everything that publishes' },
  { name: 'chromium', program: 'chromium', neededBy: 'test/browser' },
  { name: 'libnss3-tools', program: 'certutil', neededBy: 'browsers that trust the local authority' },
  { name: 'pebble', program: 'pebble', neededBy: 'certificates by ACME' },
  { name: 'nginx', program: 'nginx', neededBy: 'bench' },
  { name: 'caddy', program: 'caddy', neededBy: 'bench' },
  { name: 'nghttp2-client', program: 'h2load', neededBy: 'bench' },
  { name: 'wrk', program: 'wrk', neededBy: 'bench' },
  { name: 'faketime', program: 'faketime', neededBy: 'renewal of certificates' },
  { name: 'slowhttptest', program: 'slowhttptest', neededBy: 'slow clients' },
  { name: 'testssl.sh', program: 'testssl', neededBy: 'TLS settings' },
  { name: 'unzip', program: 'unzip', neededBy: 'exports' },
]

/** Some are in directories that an ordinary user's PATH does not name. */
const FOLDERS = [...(process.env['PATH'] ?? '').split(path.delimiter), '/usr/sbin', '/sbin', '/usr/games']

function isInstalled(program: string): boolean {
  return FOLDERS.some((folder) => {
    try {
      accessSync(path.join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

const missing = () => PACKAGES.filter(({ program }) => !isInstalled(program))

function install(names: readonly string[]): void {
  const options = { stdio: 'ignore', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } } as const
  const apt = (args: readonly string[]) => spawnSync('apt-get', args, options).status === 0
  // A service that starts by itself would take ports; we run the programs ourselves.
  const settings = ['-qq', '-y', '--no-install-recommends', '-o', 'Dpkg::Options::=--force-confold']
  if (!apt(['install', ...settings, ...names])) {
    apt(['update', '-qq'])
    // One that this release does not have must not cost the others.
    if (!apt(['install', ...settings, ...names])) for (const name of names) apt(['install', ...settings, name])
  }
}

const wanted = missing()
if (wanted.length > 0 && process.getuid?.() === 0 && isInstalled('apt-get')) {
  console.log(`installing from Debian: ${wanted.map(({ name }) => name).join(' ')}`)
  install(wanted.map(({ name }) => name))
}
const absent = missing()
if (absent.length > 0) {
  console.log(
    `not installed, so tests that need them cannot run: ${absent.map(({ name, neededBy }) => `${name} (${neededBy})`).join(', ')}`,
  )
  if (process.env['CI']) process.exitCode = 1
}
