/** What comes from npm and from Debian: other people's programs and pages. No part of `npm test` asks for any. */
import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { promisify } from 'node:util'
import { wayOut } from './surroundings.ts'

const run = promisify(execFile)

/** A registry does not answer each time. */
const RETRIES = 6
const NPM = ['--no-audit', '--no-fund', '--prefer-offline', `--fetch-retries=${RETRIES}`]
const APT = ['-q', '-o', `Acquire::Retries=${RETRIES}`]
const MAX_OUTPUT_BYTES = 50_000_000

const optionsIn = (folder: string) => ({
  cwd: folder,
  env: { ...process.env, ...wayOut(), NODE_OPTIONS: '' },
  maxBuffer: MAX_OUTPUT_BYTES,
})

/** Installs packages into the project in this folder. */
export async function installFromNpm(
  folder: string,
  packages: readonly string[],
  options: readonly string[] = [],
): Promise<void> {
  await run('npm', ['install', ...NPM, ...options, ...packages], optionsIn(folder))
}

/** Unpacks a package into this folder. */
export async function unpackFromDebian(folder: string, name: string): Promise<void> {
  const options = optionsIn(folder)
  const download = () => run('apt-get', ['download', ...APT, name], options)
  // Lists that are older than the mirror name what is no longer there.
  await download().catch(async () => {
    await run('apt-get', ['update', ...APT], options)
    await download()
  })
  const [archive] = globSync('*.deb', { cwd: folder })
  await run('dpkg-deb', ['-x', archive!, folder], options)
}
