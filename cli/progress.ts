/** A progress bar for somebody who watches; silence for a log file. */
import type { Progress } from './upload.ts'
import { formatBytes, type Terminal } from './terminal.ts'

const REDRAW_MS = 80
const BAR_CHARS = 24

export function createProgress(terminal: Terminal): Progress {
  return terminal.interactive ? createBar(terminal) : { begin() {}, advance() {}, finish() {} }
}

function createBar({ stderr }: Terminal): Progress {
  let total = 0
  let sent = 0
  let files = 0
  let drawnAt = 0
  function draw(): void {
    drawnAt = Date.now()
    const share = total === 0 ? 1 : Math.min(1, sent / total)
    const filled = Math.round(share * BAR_CHARS)
    const bar = '█'.repeat(filled) + '░'.repeat(BAR_CHARS - filled)
    stderr.write(
      `\r\u001b[K${bar} ${Math.floor(share * 100)} %  ${formatBytes(sent)} of ${formatBytes(total)}, ${files} files`,
    )
  }
  return {
    begin(count, bytes) {
      files = count
      total = bytes
      if (count > 0) draw()
    },
    advance(bytes) {
      sent += bytes
      if (Date.now() - drawnAt > REDRAW_MS) draw()
    },
    finish() {
      if (files > 0) stderr.write('\r\u001b[K')
    },
  }
}
