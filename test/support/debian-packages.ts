/**
 * Before the tests: installs what they need from Debian, where that is possible (root and apt). Elsewhere the files that
 * need a missing program are skipped (vitest.config.ts), and this says which and why. In CI (`CI=true`) that is a failure.
 */
import { spawnSync } from 'node:child_process'
import { filesInNeedOf, isInstalled, missingPackages, OPERATIONS_FILES, PAGES_FILES, TEST_FILES } from './programs.ts'

/** For whoever else installs something just now: another run of tests, or the machine by itself. */
const WAITING = ['-o', 'DPkg::Lock::Timeout=600']

function install(names: readonly string[]): void {
  const options = { stdio: 'ignore', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } } as const
  const apt = (args: readonly string[]) => spawnSync('apt-get', args, options).status === 0
  // A service that starts by itself would take ports; we run the programs ourselves.
  const settings = ['-qq', '-y', '--no-install-recommends', '-o', 'Dpkg::Options::=--force-confold', ...WAITING]
  if (!apt(['install', ...settings, ...names])) {
    apt(['update', '-qq'])
    // One that this release does not have must not cost the others.
    if (!apt(['install', ...settings, ...names])) for (const name of names) apt(['install', ...settings, name])
  }
}

const wanted = missingPackages()
const canInstall = process.getuid?.() === 0 && isInstalled('apt-get')
if (wanted.length > 0 && canInstall) {
  console.log(`installing from Debian: ${wanted.map(({ name }) => name).join(' ')}`)
  install(wanted.flatMap(({ name, with: others = [] }) => [name, ...others]))
}
const absent = missingPackages()
const reason = canInstall ? 'apt could not install it' : 'installing it needs root and apt'
for (const missing of absent) {
  const files = [
    ...filesInNeedOf([missing], [...TEST_FILES, ...PAGES_FILES, ...OPERATIONS_FILES], process.cwd()).keys(),
  ].toSorted()
  if (files.length > 0) console.log(`skipped, because ${missing.name} is missing and ${reason}: ${files.join(' ')}`)
}
if (absent.length > 0 && process.env['CI']) {
  console.error(`missing: ${absent.map(({ name }) => name).join(', ')}; in CI nothing is skipped`)
  process.exitCode = 1
}
