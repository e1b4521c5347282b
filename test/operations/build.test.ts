/** `npm run build` twice at once in one checkout, and a start from what came of it. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { run } from '../support/stack.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const env = { PATH: process.env['PATH']! }

function copyCheckout(): string {
  const checkout = mkdtempSync(path.join(os.tmpdir(), 'dropway-test-build-'))
  onTestFinished(() => rmSync(checkout, { recursive: true, force: true }))
  for (const name of ['certs', 'control', 'edge', 'shared', 'package.json'])
    cpSync(path.join(ROOT, name), path.join(checkout, name), { recursive: true })
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(checkout, 'node_modules'))
  return checkout
}

test('two builds at once are both whole, and the programs start from one of them', async () => {
  const checkout = copyCheckout()
  const build = () => run([path.join(checkout, 'control/operations/building/build.ts')], env)
  for (const { code, stderr } of await Promise.all([build(), build()])) expect(code, stderr).toBe(0)

  const built = path.join(checkout, 'built')
  const { build: current } = JSON.parse(readFileSync(path.join(built, 'sources.json'), 'utf8')) as { build: string }
  const builds = readdirSync(built).filter((name) => name !== 'sources.json')
  expect(builds).toHaveLength(2)
  expect(builds).toContain(current)
  const [one, other] = builds.map((name) => readdirSync(path.join(built, name), { recursive: true }).length)
  expect(one).toBe(other)

  // By the list, and from the build itself, as the image does.
  for (const program of [
    path.join(checkout, 'control/operations/supervisor/main.ts'),
    path.join(built, current, 'control-operations-supervisor-main.js'),
  ]) {
    const { code, stdout, stderr } = await run([program, '--help'], env)
    expect([code, stdout.split('\n')[0]], stderr).toEqual([0, expect.stringContaining('Runs Dropway on this machine')])
  }
})
