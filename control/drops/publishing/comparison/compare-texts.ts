/** Compares texts of two versions, and keeps what a page shows of it. Runs in a worker thread. */
import type { BlobStore } from '../../../../shared/blobs/blob-store.ts'
import { diffLines, type DiffLine } from './text-diff.ts'

/** A file as it was and as it is, by hash. */
export interface TextPair {
  readonly path: string
  readonly before: string
  readonly after: string
}

export interface ShownLine extends DiffLine {
  /** Lines before it are left out. */
  readonly isAfterGap: boolean
}

export interface TextChange {
  readonly path: string
  /** Undefined where comparing takes too long. */
  readonly shown:
    | {
        readonly lines: readonly ShownLine[]
        /** How many more there are. */
        readonly hidden: number
      }
    | undefined
}

/** Lines around a change, and of one file at most: the preview shows the rest. */
const SHOWN_AROUND = 2
const SHOWN_LINES = 300
const SHOWN_LINE_CHARS = 300

export async function compareTexts(blobs: Pick<BlobStore, 'read'>, pairs: readonly TextPair[]): Promise<TextChange[]> {
  const changes: TextChange[] = []
  for (const { path, before, after } of pairs) {
    const [old, fresh] = [await blobs.read(before), await blobs.read(after)]
    const lines = diffLines(old.toString(), fresh.toString())
    changes.push({ path, shown: lines && nearChanges(lines) })
  }
  return changes
}

function nearChanges(lines: readonly DiffLine[]): NonNullable<TextChange['shown']> {
  const isNear = new Uint8Array(lines.length)
  for (const [index, { kind }] of lines.entries())
    if (kind !== 'same') isNear.fill(1, Math.max(0, index - SHOWN_AROUND), index + SHOWN_AROUND + 1)
  const shown: ShownLine[] = []
  let hidden = 0
  for (const [index, line] of lines.entries()) {
    if (isNear[index] === 0) continue
    if (shown.length < SHOWN_LINES) shown.push({ ...shortened(line), isAfterGap: isNear[index - 1] !== 1 })
    else hidden++
  }
  return { lines: shown, hidden }
}

function shortened(line: DiffLine): DiffLine {
  const { text } = line
  return text.length > SHOWN_LINE_CHARS ? { ...line, text: `${text.slice(0, SHOWN_LINE_CHARS)}…` } : line
}
