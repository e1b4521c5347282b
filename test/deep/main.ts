/**
 * `npm run test:deep [-- part…] [--seed <seed>] [--list]`: everything that is random, judged by a clock, done in every way
 * or long. Parts run one after the other; what each prints is in `test/output/deep/<part>.log`. A part that fails ends
 * with the line that repeats it.
 */
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, mkdirSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { argumentsOf } from '../support/arguments.ts'
import { PARTS, type Part } from './parts.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const LOGS = path.join(ROOT, 'test', 'output', 'deep')
const MAX_SEED = 1_000_000
const PROGRESS_MS = 10_000
const SHOWN_LINES = 40

const names = PARTS.map(({ name }) => name)
const list = PARTS.map(
  ({ name, what, minutes }) => `${name.padEnd(12)} ${String(minutes).padStart(3)} min  ${what}`,
).join('\n')
const { values, words } = argumentsOf(
  {
    command: 'test:deep',
    does: list,
    words: { sample: 'part', of: names, about: 'all of them by default' },
  },
  {
    seed: { kind: 'whole', least: 0, most: MAX_SEED - 1, about: 'the seed of a run before, to repeat it' },
    list: { kind: 'flag', about: 'only say what there is' },
  },
)

if (values.list) console.log(list)
else {
  const chosen = PARTS.filter(({ name }) => words.length === 0 || words.includes(name))
  process.exitCode = await runAll(chosen, String(values.seed ?? randomInt(MAX_SEED)))
}

async function runAll(parts: readonly Part[], seed: string): Promise<number> {
  mkdirSync(LOGS, { recursive: true })
  const minutes = parts.reduce((sum, part) => sum + part.minutes, 0)
  console.log(`seed ${seed}, ${parts.length} parts, some ${minutes} minutes on two quiet cores (${process.arch})`)
  const failed: Part[] = []
  for (const [index, part] of parts.entries()) {
    console.log(`${index + 1}/${parts.length} ${part.name}: ${part.what}`)
    if (!(await runPart(part, seed))) failed.push(part)
  }
  console.log(`${parts.length - failed.length} passed, ${failed.length} failed`)
  for (const { name } of failed) console.log(`again: npm run test:deep -- ${name} --seed ${seed}`)
  return failed.length === 0 ? 0 : 1
}

async function runPart({ name, command }: Part, seed: string): Promise<boolean> {
  const startedAt = performance.now()
  const seconds = (): string => `${Math.round((performance.now() - startedAt) / 1000)} s`
  const file = path.join(LOGS, `${name}.log`)
  const log = createWriteStream(file)
  const lines: string[] = []
  const child = spawn(command, {
    shell: true,
    cwd: ROOT,
    env: { ...process.env, DEEP: '1', SEED: seed, CI: 'true' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => {
      log.write(`${line}\n`)
      const plain = stripVTControlCharacters(line).trim()
      if (plain !== '') lines.push(plain.slice(0, 160))
      if (lines.length > SHOWN_LINES) lines.shift()
    })
  const progress = setInterval(() => console.log(`  ${seconds()}: ${lines.at(-1) ?? 'starting'}`), PROGRESS_MS)
  const [code] = (await once(child, 'close')) as [number | null]
  clearInterval(progress)
  log.end()
  if (code === 0) {
    console.log(`  passed in ${seconds()}`)
    return true
  }
  for (const line of lines) console.log(`  | ${line}`)
  console.log(`  FAILED after ${seconds()}, all of it in ${path.relative(ROOT, file)}`)
  console.log(`  again: npm run test:deep -- ${name} --seed ${seed}`)
  return false
}
