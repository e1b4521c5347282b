/** Where figures are kept, and what they were measured on. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** A run that only shows that everything works must not replace figures that were measured. */
export const RESULTS = process.env['BENCH_RESULTS'] ?? path.join(import.meta.dirname, 'results')

/** Figures of one architecture say nothing about another: each keeps its own. */
const PER_ARCHITECTURE: ReadonlySet<string> = new Set(['edge', 'walk', 'connections'])

export interface Machine {
  readonly measuredAt: string
  readonly node: string
  readonly architecture: string
  readonly machine: string
  readonly memoryGb: number
  readonly kernel: string
  /** Above the number of cores: others were working too, and latencies say little. */
  readonly loadAverage: number
}

export function machineFacts(): Machine {
  return {
    measuredAt: new Date().toISOString(),
    node: process.version,
    architecture: os.arch(),
    machine: `${os.availableParallelism()} cores, ${os.cpus()[0]?.model ?? 'unknown processor'}`,
    memoryGb: Math.round(os.totalmem() / 1e8) / 10,
    kernel: os.release(),
    loadAverage: Math.round(os.loadavg()[0]! * 10) / 10,
  }
}

export function keepResult(name: string, figures: object): void {
  mkdirSync(RESULTS, { recursive: true })
  const record = { ...machineFacts(), ...figures }
  writeFileSync(path.join(RESULTS, fileOf(name)), `${JSON.stringify(record, undefined, 2)}\n`)
}

function fileOf(name: string): string {
  return PER_ARCHITECTURE.has(name) ? `${name}-${os.arch()}.json` : `${name}.json`
}

export function commitOf(folder: string): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: folder, encoding: 'utf8' }).trim()
  } catch {
    return 'unknown'
  }
}

/** What a bench has kept in this folder since that moment; undefined when it kept nothing. */
export function resultSince(folder: string, name: string, sinceMs: number): unknown {
  const file = path.join(folder, fileOf(name))
  const facts = statSync(file, { throwIfNoEntry: false })
  return facts !== undefined && facts.mtimeMs >= sinceMs ? JSON.parse(readFileSync(file, 'utf8')) : undefined
}
