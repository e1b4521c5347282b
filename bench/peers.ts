/**
 * `npm run bench:peers`: fetches nginx and Caddy as new as Debian has them (its suite "testing") into a folder of their own,
 * which git ignores. Benches take them from there; without it they take the installed ones. Nothing is installed: each package
 * is unpacked, with the libraries that it needs, and started by the loader that came with them. A minute.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { findProgram } from '../test/support/programs.ts'

const FOLDER = path.join(import.meta.dirname, '..', 'bench-peers')
const PROGRAMS = path.join(FOLDER, 'bin')
const SUITE = 'testing'
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

export type Peer = 'nginx' | 'caddy'

/** What each is unpacked from; the libraries stand beside all of them. */
const PACKAGES: Readonly<Record<Peer, readonly string[]>> = {
  nginx: ['nginx', 'libssl3t64', 'libpcre2-8-0', 'libcrypt1', 'zlib1g', 'libzstd1', 'libc6'],
  caddy: ['caddy', 'libc6'],
}

/** The newest that is there; undefined where there is none. */
export function findPeer(peer: Peer): string | undefined {
  const fetched = path.join(PROGRAMS, peer)
  return existsSync(fetched) ? fetched : findProgram(peer)
}

/** As it says itself, for results. */
export function versionOf(peer: Peer): string | undefined {
  const program = findPeer(peer)
  if (program === undefined) return undefined
  const { stdout, stderr } = spawnSync(program, [peer === 'nginx' ? '-v' : 'version'], { encoding: 'utf8' })
  return /\d+\.\d+\.\d+/.exec(`${stdout} ${stderr}`)?.[0]
}

export function fetchPeers(): void {
  rmSync(FOLDER, { recursive: true, force: true })
  for (const folder of ['lists/partial', 'cache/archives/partial', 'packages', 'root', 'bin'])
    mkdirSync(path.join(FOLDER, folder), { recursive: true })
  const sources = path.join(FOLDER, 'sources.list')
  writeFileSync(sources, `deb [signed-by=${KEYRING}] ${archive()} ${SUITE} main\n`)
  const apt = (...args: readonly string[]): void => {
    const places = {
      'Dir::Etc::sourcelist': sources,
      'Dir::Etc::sourceparts': '-',
      'Dir::State::lists': path.join(FOLDER, 'lists'),
      'Dir::Cache': path.join(FOLDER, 'cache'),
      // As root it would fetch as another user, who may not write here.
      'APT::Sandbox::User': 'root',
    }
    const options = Object.entries(places).flatMap(([name, value]) => ['-o', `${name}=${value}`])
    execFileSync('apt-get', ['-qq', ...options, ...args], { cwd: path.join(FOLDER, 'packages'), stdio: 'inherit' })
  }
  apt('update')
  apt('download', ...[...new Set(Object.values(PACKAGES).flat())].map((name) => `${name}/${SUITE}`))
  const root = path.join(FOLDER, 'root')
  for (const file of globSync(path.join(FOLDER, 'packages', '*.deb'))) execFileSync('dpkg-deb', ['-x', file, root])
  const [loader] = globSync(path.join(root, 'usr/lib*/ld-linux-*'))
  const [library] = globSync(path.join(root, 'usr/lib/*-linux-gnu'))
  for (const peer of Object.keys(PACKAGES) as Peer[]) {
    const [program] = globSync(path.join(root, 'usr/{bin,sbin}', peer))
    if (loader === undefined || library === undefined || program === undefined)
      throw new Error(`${peer} is not where its package used to have it`)
    const file = path.join(PROGRAMS, peer)
    writeFileSync(file, `#!/bin/sh\nexec ${loader} --library-path ${library} ${program} "$@"\n`)
    chmodSync(file, 0o755)
  }
  for (const folder of ['lists', 'cache', 'packages']) rmSync(path.join(FOLDER, folder), { recursive: true })
}

/** Where this machine has Debian from: its archive has every suite. */
function archive(): string {
  const asked = ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages']
  const addresses = execFileSync('apt-get', asked, { encoding: 'utf8' }).split('\n')
  const found = addresses.find((address) => address !== '' && !address.includes('security'))
  if (found === undefined) throw new Error('This machine has no packages of Debian.')
  return found
}

if (import.meta.main) {
  fetchPeers()
  for (const peer of Object.keys(PACKAGES) as Peer[]) console.log(`${peer} ${versionOf(peer)}`)
}
