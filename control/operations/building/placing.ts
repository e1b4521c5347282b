/**
 * Where a build lies: in a folder of its own below `built/`, which nothing else writes to. The list beside the folders
 * names the one that runs; it is renamed into its place when that one is whole. So builds, starts and running processes of
 * one checkout may meet as they like:
 *
 *   begin: a new folder → join the modules into it → mark the one before as superseded → rename the list → tidy up
 *
 * A process stays with the build that it was started from, and loads threads and modules from it later.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import {
  BUILT_FOLDER,
  buildFolder,
  listFile,
  placedBuild,
  SEALED_BUILD,
  sourceMark,
  type PlacedBuild,
  type SourceMarks,
} from '../../../shared/running/built.ts'
import { DAY_MS } from '../../../shared/running/clock.ts'

/** A build that was superseded stays so long for the processes that were started from it, and a killed one lies so long. */
const STAYS_MS = DAY_MS

/** Makes the folder of a new build; returns its name. A sealed one, of the image, always has the same. */
export function beginBuild(root: string, isSealed = false): string {
  const build = isSealed ? SEALED_BUILD : randomBytes(6).toString('hex')
  const folder = buildFolder(root, build)
  // The list does not name it before it is whole again: the sources run meanwhile, and where this one fails or is killed.
  if (placedBuild(root)?.build === build) rmSync(listFile(root))
  if (isSealed) rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  return build
}

/** Lets a build that is whole run from now on, and takes away what no process loads any more. */
export function placeBuild(root: string, placed: PlacedBuild, nowMs = Date.now()): void {
  // Marked before it is superseded: who tidies up, and finds it unnamed, finds it young.
  for (const superseded of supersededBy(root)) utimesSync(superseded, nowMs / 1000, nowMs / 1000)
  const draft = path.join(buildFolder(root, placed.build), 'list.draft')
  writeFileSync(draft, JSON.stringify(placed))
  renameSync(draft, listFile(root))
  tidyUp(root, nowMs)
}

/** What the next build supersedes. A list that names no build is one of an earlier checkout, whose files lay beside it. */
function supersededBy(root: string): string[] {
  const named = placedBuild(root)?.build
  if (named !== undefined) return [buildFolder(root, named)].filter((folder) => existsSync(folder))
  const folder = path.join(root, BUILT_FOLDER)
  return existsSync(listFile(root)) ? readdirSync(folder).map((name) => path.join(folder, name)) : []
}

/** Takes away a build that failed. */
export function dropBuild(root: string, build: string): void {
  rmSync(buildFolder(root, build), { recursive: true, force: true })
}

/** Remembers the state of sources. */
export interface SourceNotes {
  /** Notes a source before it is read: one that is edited afterwards is another than the one that was built. */
  note(source: string): void
  marks(): SourceMarks
}

export function createSourceNotes(root: string): SourceNotes {
  const marks = new Map<string, string>()
  return {
    note(source) {
      // No file has the empty mark, so that what vanished while it was read makes a build of no sources.
      if (!marks.has(source)) marks.set(source, sourceMark(path.join(root, source)) ?? '')
    },
    marks: () => Object.fromEntries(marks),
  }
}

function tidyUp(root: string, nowMs: number): void {
  const folder = path.join(root, BUILT_FOLDER)
  for (const name of readdirSync(folder)) {
    const place = path.join(folder, name)
    if (place === listFile(root) || name === placedBuild(root)?.build) continue
    // After the list was read: one that was superseded before has its mark by now.
    const stats = statSync(place, { throwIfNoEntry: false })
    if (stats !== undefined && nowMs - stats.mtimeMs > STAYS_MS) rmSync(place, { recursive: true, force: true })
  }
}
