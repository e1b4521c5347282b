/**
 * The file system, as a blob store calls it. From an event loop every call goes to another thread and back. A thread that
 * serves no one meanwhile calls directly, at a tenth of the processor time; only what waits for the disk still leaves it,
 * so that many blobs become durable at once. For a few it waits itself, which wakes no other thread.
 */
import * as fs from 'node:fs'
import * as promises from 'node:fs/promises'
import { promisify } from 'node:util'

export interface FileCalls {
  open(path: string, flags: 'r' | 'wx'): Promise<OpenFile>
  readFile(path: string): Promise<Buffer>
  stat(path: string): Promise<FileStats>
  utimes(path: string, atime: Date, mtime: Date): Promise<void>
  link(path: string, name: string): Promise<void>
  rm(path: string): Promise<void>
}

export interface OpenFile {
  write(chunk: Uint8Array, offset: number): Promise<{ readonly bytesWritten: number }>
  stat(): Promise<FileStats>
  datasync(): Promise<void>
  sync(): Promise<void>
  close(): Promise<void>
}

export interface FileStats {
  readonly size: number
  readonly mtimeMs: number
}

/** `rm` would look at the file first, in a turn of its own. */
export const offThreadCalls: FileCalls = { ...promises, rm: promises.unlink }

/** How what was written to a file becomes durable. */
interface Syncing {
  datasync(descriptor: number): Promise<void>
  sync(descriptor: number): Promise<void>
}

const syncingElsewhere: Syncing = { datasync: promisify(fs.fdatasync), sync: promisify(fs.fsync) }

const syncingHere: Syncing = {
  datasync: async (descriptor) => fs.fdatasyncSync(descriptor),
  sync: async (descriptor) => fs.fsyncSync(descriptor),
}

export const directCalls: FileCalls = {
  open: async (path, flags) => openDirectly(fs.openSync(path, flags), syncingElsewhere),
  readFile: async (path) => fs.readFileSync(path),
  stat: async (path) => fs.statSync(path),
  utimes: async (path, atime, mtime) => fs.utimesSync(path, atime, mtime),
  link: async (path, name) => fs.linkSync(path, name),
  rm: async (path) => fs.unlinkSync(path),
}

/** For a thread that has nothing else to do until a blob is durable. */
export const waitingCalls: FileCalls = {
  ...directCalls,
  open: async (path, flags) => openDirectly(fs.openSync(path, flags), syncingHere),
}

function openDirectly(descriptor: number, { datasync, sync }: Syncing): OpenFile {
  let isOpen = true
  return {
    write: async (chunk, offset) => ({ bytesWritten: fs.writeSync(descriptor, chunk, offset) }),
    stat: async () => fs.fstatSync(descriptor),
    datasync: () => datasync(descriptor),
    sync: () => sync(descriptor),
    async close() {
      // The number of a closed file is given to the next one that is opened, which a second call would close.
      if (!isOpen) throw new Error('this file is closed')
      isOpen = false
      fs.closeSync(descriptor)
    },
  }
}
