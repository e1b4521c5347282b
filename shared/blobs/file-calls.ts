/**
 * The file system, as a blob store calls it. From an event loop every call goes to another thread and back. A thread that
 * serves no one meanwhile calls directly, at a tenth of the processor time; only what waits for the disk still leaves it,
 * so that many blobs become durable at once.
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

const datasync = promisify(fs.fdatasync)
const sync = promisify(fs.fsync)

export const directCalls: FileCalls = {
  open: async (path, flags) => openDirectly(fs.openSync(path, flags)),
  readFile: async (path) => fs.readFileSync(path),
  stat: async (path) => fs.statSync(path),
  utimes: async (path, atime, mtime) => fs.utimesSync(path, atime, mtime),
  link: async (path, name) => fs.linkSync(path, name),
  rm: async (path) => fs.unlinkSync(path),
}

function openDirectly(descriptor: number): OpenFile {
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
