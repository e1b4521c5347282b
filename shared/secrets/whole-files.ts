/**
 * Small secret files (0600) that several processes may write at once: whoever reads one, it is whole. The bytes are on the
 * disk before the name leads to them, and the name is before anyone uses them: a power cut leaves all of it or nothing.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

export function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Reads the file, or creates it. The first of two processes that do so at once wins (a link is atomic); both read its file. */
export function readOrCreate(file: string, create: () => string): string {
  const present = readIfThere(file)
  if (present !== undefined) return present
  const draft = writeDraft(file, create())
  try {
    linkSync(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft)
  }
  syncFolder(file)
  return readFileSync(file, 'utf8')
}

/** Replaces the file as a whole. The last of two processes that do so at once wins. */
export function replaceFile(file: string, content: string): void {
  renameSync(writeDraft(file, content), file)
  syncFolder(file)
}

function writeDraft(file: string, content: string): string {
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`
  try {
    writeFileSync(draft, content, { mode: 0o600, flush: true })
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
  return draft
}

function syncFolder(file: string): void {
  const handle = openSync(path.dirname(file), 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
