/** Where figures are kept, and what they were measured on. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { isMet, tableText, verdictOn, withFigure, type Judged, type Table } from './judged.ts'

const ROOT = path.resolve(import.meta.dirname, '..')

/** Git ignores the one; the other is for figures that were measured with care. */
const IGNORED = path.join(ROOT, 'bench-results')
const KEPT = path.join(import.meta.dirname, 'results')

/** What a bench ends with that has measured all it should, and misses a bar. */
export const MISSED = 3

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
    loadAverage: Math.round((os.loadavg()[0] ?? 0) * 10) / 10,
  }
}

/** Takes the figures of one bench. */
export interface Results {
  /** Says whether a figure holds its bar, and puts it into the table of the architecture. A bench that misses one ends with an error. */
  judge(judged: Judged): void
  keep(figures: object): void
  /** For figures that are a document. */
  keepText(file: string, text: string): void
}

export const resultsFolder = (isKept: boolean): string => (isKept ? KEPT : IGNORED)

export function createResults(folder: string, name: string, onWritten: (file: string) => void): Results {
  const before = machineFacts()
  const keepText = (file: string, text: string): void => {
    mkdirSync(folder, { recursive: true })
    writeFileSync(path.join(folder, file), text)
    onWritten(path.join(folder, file))
  }
  return {
    judge(judged) {
      process.stdout.write(`${verdictOn(judged)}\n`)
      if (!isMet(judged)) process.exitCode = MISSED
      keepRow(folder, name, judged, before)
    },
    keep: (figures) => keepText(fileOf(name), `${JSON.stringify({ ...machineFacts(), ...figures }, undefined, 2)}\n`),
    keepText,
  }
}

/** Rows as data, and beside them as a table to read. */
function keepRow(
  folder: string,
  name: string,
  judged: Judged,
  { measuredAt, loadAverage, architecture }: Machine,
): void {
  const file = path.join(folder, fileOf('rows'))
  const former = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Table) : {}
  const found = { day: measuredAt.slice(0, 10), commit: commitOf(import.meta.dirname), loadAverage }
  const table = withFigure(former, name, judged, found)
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, `${JSON.stringify(table, undefined, 2)}\n`)
  writeFileSync(path.join(folder, `${architecture}.md`), tableText(architecture, table))
}

/** Figures of one architecture say nothing about another: each keeps its own. */
function fileOf(name: string): string {
  return `${name}-${os.arch()}.json`
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
