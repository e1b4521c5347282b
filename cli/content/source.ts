/**
 * What `deploy` publishes: a folder that was named or found, a page, a document, or a zip. In a folder below one that has
 * a `.dropway.json`, what that project publishes.
 */
import { stat } from 'node:fs/promises'
import path from 'node:path'
import { usageError } from '../terminal/failure.ts'
import { findProjectFolder } from './project/project.ts'
import { fileKindOf, isPageFormat, LANDING_PAGES } from '../../shared/content/upload-kind.ts'

/** Where static-site generators and bundlers put what they build, in the order they are looked for. */
export const BUILD_FOLDERS = ['dist', 'build', 'out', 'public', '_site'] as const

export type Source =
  | { readonly kind: 'folder'; readonly path: string; readonly project: string }
  | { readonly kind: 'page' | 'document'; readonly path: string; readonly project: string }
  | { readonly kind: 'zip'; readonly path: string; readonly project: string }

export async function findSource(cwd: string, argument: string | undefined): Promise<Source> {
  return argument === undefined
    ? findFolder(findProjectFolder(cwd) ?? cwd)
    : namedSource(path.resolve(cwd, argument), argument)
}

async function namedSource(target: string, argument: string): Promise<Source> {
  const stats = await stat(target).catch(() => undefined)
  if (stats === undefined) throw usageError(`"${argument}" does not exist.`)
  if (stats.isDirectory()) return { kind: 'folder', path: target, project: projectOf(target) }
  const kind = sourceKind(target)
  if (kind === undefined)
    throw usageError(
      `"${argument}" cannot be published by itself. Give a folder, a page (.html, .md), a .zip, a PDF, an image, a video, a sound or a text file.`,
    )
  return { kind, path: target, project: path.dirname(target) }
}

function sourceKind(file: string): 'page' | 'document' | 'zip' | undefined {
  const kind = fileKindOf(path.basename(file))
  if (kind === undefined || kind === 'archive') return kind && 'zip'
  return isPageFormat(kind) ? 'page' : 'document'
}

/** A build folder is wiped by the next build, so its project remembers the drop. */
function projectOf(folder: string): string {
  return (BUILD_FOLDERS as readonly string[]).includes(path.basename(folder)) ? path.dirname(folder) : folder
}

/** The folder of a plain site is itself; a project with a package.json publishes what it built. */
async function findFolder(cwd: string): Promise<Source> {
  const isSite = await hasLandingPage(cwd)
  const isProject = await exists(path.join(cwd, 'package.json'))
  if (!isSite || isProject) {
    for (const name of BUILD_FOLDERS) {
      const folder = path.join(cwd, name)
      if (await hasLandingPage(folder)) return { kind: 'folder', path: folder, project: cwd }
    }
  }
  if (isSite) return { kind: 'folder', path: cwd, project: cwd }
  throw usageError(
    `There is no index.html or index.md in ${cwd}, nor in its ${BUILD_FOLDERS.map((name) => `${name}/`).join(', ')}. Build the site first, or name the folder: dropway deploy <folder>.`,
  )
}

async function hasLandingPage(folder: string): Promise<boolean> {
  const found = await Promise.all(LANDING_PAGES.map((name) => exists(path.join(folder, name))))
  return found.includes(true)
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    (stats) => stats.isFile(),
    () => false,
  )
}
