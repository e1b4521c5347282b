/**
 * `npm run check`: types, lint, format, unused code. The compiler has one thread, so the others run beside it: two at a time,
 * the longest first. What each one says is printed when it has ended; one that fails makes the whole fail, after all have
 * had their say.
 */
import { spawn } from 'node:child_process'
import os from 'node:os'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { inParallel } from '../../shared/running/turns.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const CHECKS = [
  'tsc -p tsconfig.json',
  'npm run --silent lint',
  'knip',
  'tsc -p cli/tsconfig.json',
  'tsc -p control/doors/dashboard/browser/tsconfig.json',
  'tsc -p edge/rewrite/browser/tsconfig.json',
  'oxfmt --check',
]

async function run(command: string): Promise<boolean> {
  const begun = performance.now()
  const child = spawn(command, { shell: true, cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<boolean>((resolve) => child.on('exit', (code) => resolve(code === 0)))
  const [isFine, said, complained] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  const seconds = ((performance.now() - begun) / 1000).toFixed(1)
  process.stdout.write(`${isFine ? '✓' : '✗'} ${command} (${seconds} s)\n${isFine ? '' : said + complained}`)
  return isFine
}

const outcomes = await inParallel(CHECKS, Math.min(2, os.availableParallelism()), run)
process.exitCode = outcomes.every(Boolean) ? 0 : 1
