/** What is mutated, and which unit tests can notice. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { findMutants, type Mutant } from './mutants.ts'

export const ROOT = join(import.meta.dirname, '../..')

/**
 * The pure decisions, by the folder that the report names. Globs, so that a file that moves within its folder stays in.
 * Left out: words and looks (the banner's texts, style sheets, drawings, pages), which people judge by reading.
 */
const TARGETS: Readonly<Record<string, readonly string[]>> = {
  'edge/locate': ['edge/locate/*.ts'],
  'edge/gate': ['edge/gate/{state,attempts,unlock}.ts'],
  'edge/rewrite': ['edge/rewrite/{csp,headers,inject,language,negotiate,script-text,snippets,trackers}.ts'],
  'edge/send': ['edge/send/preconditions.ts'],
  control: ['control/**/rules.ts', 'control/ground/actor.ts'],
  'control/drops/publishing': ['control/drops/publishing/**/tokens.ts'],
  certs: ['certs/policy.ts'],
  shared: ['shared/**/{hosts,path-pattern,pattern-set}.ts'],
}

/** What measures time, reads the sources as text or takes any bytes says nothing about one fault, and takes long. */
const NO_WITNESSES = /(?:^|\/|-)(?:cost|complexity|fuzz|layers|regular-expressions)\.test\.ts$/

export interface Target {
  readonly file: string
  readonly folder: string
  /** Number of its first mutant; the others count on. */
  readonly first: number
  readonly source: string
  readonly mutants: readonly Mutant[]
}

/** `filters`: beginnings of paths; none means everything. Always in the same order, so that numbers keep their meaning. */
export function findTargets(filters: readonly string[]): Target[] {
  const targets: Target[] = []
  let first = 1
  for (const { file, folder } of findFiles().filter(isAskedFor(filters))) {
    const source = readFileSync(join(ROOT, file), 'utf8')
    const mutants = findMutants(file, source)
    targets.push({ file, folder, first, source, mutants })
    first += mutants.length
  }
  return targets
}

/** Folders of which every file is asked for: only those can be compared with their floor. */
export function wholeFolders(filters: readonly string[]): string[] {
  const isAsked = isAskedFor(filters)
  const folders = Map.groupBy(findFiles(), ({ folder }) => folder)
  return [...folders].flatMap(([folder, files]) => (files.every(isAsked) ? [folder] : []))
}

interface MutatedFile {
  readonly file: string
  readonly folder: string
}

function findFiles(): MutatedFile[] {
  return Object.entries(TARGETS).flatMap(([folder, globs]) =>
    globSync([...globs], { cwd: ROOT })
      .sort()
      .map((file) => ({ file, folder: folder === 'control' ? dirname(file) : folder })),
  )
}

const isAskedFor =
  (filters: readonly string[]) =>
  ({ file }: MutatedFile): boolean =>
    filters.length === 0 || filters.some((filter) => file.startsWith(filter))

/**
 * The unit tests that load one of the files, directly or through others. Those that load little come first: they were
 * written for these files, answer at once, and leave few faults to the others.
 */
export function findWitnesses(files: readonly string[]): string[] {
  const wanted = files.map((file) => join(ROOT, file))
  return globSync('test/unit/**/*.test.ts', { cwd: ROOT })
    .filter((file) => !NO_WITNESSES.test(file))
    .map((file) => ({ file, loaded: loadedBy(join(ROOT, file)) }))
    .filter(({ loaded }) => wanted.some((file) => loaded.has(file)))
    .sort((a, b) => a.loaded.size - b.loaded.size || (a.file < b.file ? -1 : 1))
    .map(({ file }) => file)
}

function loadedBy(path: string, loaded: Set<string> = new Set()): ReadonlySet<string> {
  loaded.add(path)
  for (const next of importsOf(path)) if (!loaded.has(next)) loadedBy(next, loaded)
  return loaded
}

function importsOf(path: string): string[] {
  const text = readFileSync(path, 'utf8')
  const names = [...text.matchAll(/^(?:import|export) (?!type )[^'"]*['"](\.[^'"]+\.ts)['"]/gm)].map(
    ([, name]) => name!,
  )
  const lazy = [...text.matchAll(/\bimport\('(\.[^']+\.ts)'\)/g)].map(([, name]) => name!)
  return [...names, ...lazy].map((name) => resolve(dirname(path), name))
}

export function toRelative(path: string): string {
  return relative(ROOT, path)
}
