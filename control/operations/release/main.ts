/**
 * `npm run release [-- --draft]`: makes everything that a release gives away, into dist/<version>: both images, the client,
 * what is in the images (CycloneDX), what changed, and checksums. It publishes nothing, and says what to do next. With
 * `--draft` what speaks against it is said and does not stop it.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, createReadStream, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { changelogSection, releaseProblems, releaseTag } from './rules.ts'

const ROOT = path.join(import.meta.dirname, '../../../')
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8')
const versionIn = (file: string): string | undefined => (JSON.parse(read(file)) as { version?: string }).version
const loud = (program: string, args: readonly string[], cwd = ROOT): void =>
  void execFileSync(program, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] })

/** What a program says; empty when it fails. */
function ask(program: string, args: readonly string[]): string {
  try {
    return execFileSync(program, args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return ''
  }
}

/** What .docker/build.sh builds with, and in the same order. */
const engine = ['buildah', 'podman'].find((program) => ask(program, ['--version']) !== '') ?? 'docker'

/** Under the name that it has from then on. */
function saveImage(built: string, name: string, file: string): void {
  loud(engine, ['tag', built, name])
  if (engine === 'buildah') loud('buildah', ['push', '--quiet', name, `docker-archive:${file}`])
  else loud(engine, ['save', '--output', file, name])
  loud('gzip', ['--no-name', '--force', file])
}

/** Copies a file out of an image. */
function copyFrom(image: string, source: string, target: string): void {
  if (engine === 'buildah') {
    const container = ask('buildah', ['from', '--pull-never', image])
    copyFileSync(path.join(ask('buildah', ['mount', container]), source), target)
    loud('buildah', ['rm', container])
    return
  }
  const container = ask(engine, ['create', image])
  loud(engine, ['cp', `${container}:${source}`, target])
  loud(engine, ['rm', container])
}

async function checksumOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { draft: { type: 'boolean', default: false } } })
  const version = versionIn('package.json') ?? ''
  const changelog = read('CHANGELOG.md')
  const problems = releaseProblems({
    version,
    versions: { 'cli/package.json': versionIn('cli/package.json'), 'server.json': versionIn('server.json') },
    changelog,
    uncommitted: ask('git', ['status', '--porcelain']),
    tagged: ask('git', ['rev-parse', '--quiet', '--verify', `refs/tags/${releaseTag(version)}^{commit}`]) || undefined,
    head: ask('git', ['rev-parse', 'HEAD']),
  })
  for (const problem of problems) console.error(problem)
  if (problems.length > 0 && !values.draft) {
    console.error('Nothing was made. "npm run release -- --draft" makes it all the same, to look at.')
    process.exit(1)
  }
  const folder = path.join(ROOT, 'dist', version)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  loud('sh', ['.docker/build.sh', 'dropway'])
  const inside = (file: string): string => path.join(folder, file)
  for (const [built, name, prefix] of [
    ['dropway:latest', `dropway:${version}`, 'dropway'],
    ['dropway:roles', `dropway:${version}-roles`, 'dropway-roles'],
  ] as const) {
    saveImage(built, name, inside(`${prefix}-${version}-${process.arch}.tar`))
    copyFrom(built, '/usr/share/sbom/dropway.cdx.json', inside(`${prefix}-${version}-${process.arch}.cdx.json`))
  }
  loud('npm', ['pack', '--silent', '--pack-destination', folder], path.join(ROOT, 'cli'))
  writeFileSync(inside('CHANGES.md'), `${changelogSection(changelog, version) ?? ''}\n`)
  const files = readdirSync(folder).toSorted()
  const sums = await Promise.all(files.map(async (file) => `${await checksumOf(inside(file))}  ${file}\n`))
  writeFileSync(inside('SHA256SUMS'), sums.join(''))
  console.log(`dist/${version}: ${[...files, 'SHA256SUMS'].join(', ')}`)
  console.log(`next: git tag -s ${releaseTag(version)} && git push origin ${releaseTag(version)}`)
}

await main()
