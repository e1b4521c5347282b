/**
 * A small coverage-guided fuzzer. Inputs that reach something new join the corpus, and new inputs are made of it:
 *
 *   corpus ─▶ mutate ─▶ run ─▶ new parts of the sources?  ─▶ corpus
 *                         └─▶ threw, or took too long?     ─▶ a finding
 */
import { createHash } from 'node:crypto'
import { pathToFileURL } from 'node:url'
import path from 'node:path'
import { startCoverage } from './coverage.ts'
import { createDraw, mutate } from './mutate.ts'
import type { Target } from './targets.ts'

/** The bound for one input, in time of the thread. Measured again before it is believed. */
export const HANG_MS = 250
/** Asking for coverage costs more than most inputs: it is asked for once per batch, then for each input of a good one. */
const BATCH = 20
const MAX_CORPUS = 2000

export interface Finding {
  readonly target: string
  readonly kind: 'crash' | 'hang'
  readonly message: string
  readonly input: Buffer
}

export interface FuzzReport {
  readonly runs: number
  /** Processor time that was spent: of the thread, with its coverage; of both planes, where a service is fuzzed. */
  readonly cpuSeconds: number
  /** Inputs that reached something new, and were not in the corpus before. */
  readonly discovered: readonly Buffer[]
  readonly findings: readonly Finding[]
}

export interface FuzzOptions {
  /** Of processor time: on a busy machine the run takes longer, and is the same. */
  readonly seconds: number
  readonly seed: number
  readonly corpus: readonly Buffer[]
  /** Told before each input, to know which one never came back. */
  onInput?(input: Buffer): void
}

export async function fuzz(target: Target, options: FuzzOptions): Promise<FuzzReport> {
  const random = createDraw(options.seed)
  const words = target.words.map((word) => Buffer.from(word))
  const corpus = [...target.seeds.map((seed) => Buffer.from(seed)), ...options.corpus]
  const discovered: Buffer[] = []
  const findings = new Map<string, Finding>()
  const coverage = await startCoverage(pathToFileURL(path.resolve(import.meta.dirname, '../..')).href)
  const isNewToInputs = createNovelty()
  const isNewToBatches = createNovelty()
  const began = process.threadCpuUsage()
  let runs = 0

  function spentSeconds(): number {
    const { user, system } = process.threadCpuUsage(began)
    return (user + system) / 1e6
  }

  async function run(input: Buffer): Promise<void> {
    options.onInput?.(input)
    runs++
    const finding = await examine(target, input)
    // One of a kind is enough.
    if (finding && !findings.has(finding.message)) findings.set(finding.message, finding)
  }

  /** Those that reach what no input before them has; small ones go first, as they are the better parents. */
  async function reaching(inputs: readonly Buffer[]): Promise<Buffer[]> {
    const parents: Buffer[] = []
    for (const input of inputs.toSorted((a, b) => a.length - b.length)) {
      await run(input)
      if (isNewToInputs(await coverage.take())) parents.push(input)
    }
    return parents
  }

  await coverage.take()
  await reaching(corpus)
  while (spentSeconds() < options.seconds && findings.size < 10) {
    const batch = Array.from({ length: BATCH }, () =>
      mutate(corpus[random(corpus.length)]!, random, { corpus, words }, target.maxBytes),
    )
    for (const input of batch) await run(input)
    if (!isNewToBatches(await coverage.take()) || corpus.length >= MAX_CORPUS) continue
    const parents = await reaching(batch)
    corpus.push(...parents)
    discovered.push(...parents)
  }
  await coverage.close()
  return { runs, cpuSeconds: spentSeconds(), discovered, findings: [...findings.values()] }
}

/** Counts of a batch are sums over its inputs, so batches and inputs are compared among themselves. */
function createNovelty(): (parts: readonly string[]) => boolean {
  const seen = new Set<string>()
  return (parts) => {
    const before = seen.size
    for (const part of parts) seen.add(part)
    return seen.size > before
  }
}

/**
 * What was kept, and so many new inputs of it: the same in every run, because neither coverage, which the engine's
 * optimisations change, nor the clock has a say.
 */
export async function smoke(
  target: Target,
  { inputs, seed, corpus: kept }: { inputs: number; seed: number; corpus: readonly Buffer[] },
): Promise<{ readonly tried: readonly Buffer[]; readonly findings: readonly Finding[] }> {
  const random = createDraw(seed)
  const words = target.words.map((word) => Buffer.from(word))
  const corpus = [...target.seeds.map((one) => Buffer.from(one)), ...kept]
  const made = Array.from({ length: inputs }, () =>
    mutate(corpus[random(corpus.length)]!, random, { corpus, words }, target.maxBytes),
  )
  const tried = [...corpus, ...made]
  const findings: Finding[] = []
  for (const input of tried) {
    const finding = await tryOut(target, input)
    if (finding) findings.push(finding)
  }
  return { tried, findings }
}

/** What is wrong with an input, its time included. */
export async function examine(target: Target, input: Buffer): Promise<Finding | undefined> {
  let ms = Infinity
  // The collector, or a function that was not compiled yet, may have been in the way.
  for (let attempt = 0; attempt < 3 && ms > HANG_MS; attempt++) {
    const before = process.threadCpuUsage()
    const finding = await tryOut(target, input)
    if (finding) return finding
    const { user, system } = process.threadCpuUsage(before)
    ms = Math.min(ms, (user + system) / 1000)
  }
  if (ms <= HANG_MS) return undefined
  return { target: target.name, kind: 'hang', message: `more than ${HANG_MS} ms for ${target.name}`, input }
}

/** What is wrong with an input, however long it takes. */
export async function tryOut(target: Target, input: Buffer): Promise<Finding | undefined> {
  try {
    await target.run(input)
    return undefined
  } catch (error) {
    const message = String((error as Error).stack ?? error)
      .split('\n')
      .slice(0, 3)
      .join('\n')
    return { target: target.name, kind: 'crash', message, input }
  }
}

export function nameOf(input: Buffer): string {
  return createHash('sha256').update(input).digest('hex').slice(0, 16)
}
