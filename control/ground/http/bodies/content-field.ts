/**
 * busboy keeps a text field whole and streams only files. A field that carries content, such as a pasted page, gets a
 * filename on its way to busboy, and then comes as a stream. Linear; keeps at most the header of one part.
 */
import { Transform } from 'node:stream'

/** No file that people choose has this name. */
export const CONTENT_FILENAME = '/:content:/'

/** busboy refuses a longer header by itself. */
const MAX_HEADER_BYTES = 20_000
const HEADER_END = '\r\n\r\n'

export function boundaryOf(headers: Readonly<Record<string, string>>): string | undefined {
  const [, quoted, plain] = /;[ \t]*boundary=(?:"([^"]+)"|([^\s;"]+))/i.exec(headers['content-type'] ?? '') ?? []
  return quoted ?? plain
}

export function announceContent(boundary: string, field: string): Transform {
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  // The first part has no line before it. An empty one is a preamble, which readers skip.
  let pending: Buffer = Buffer.from('\r\n')
  let isInHeader = false

  /** Passes on what is understood; the rest waits for more. */
  function advance(output: Transform): void {
    for (;;) {
      const end = isInHeader ? pending.indexOf(HEADER_END) : pending.indexOf(delimiter)
      if (end < 0) break
      const length = isInHeader ? end : end + delimiter.length
      const piece = pending.subarray(0, length)
      output.push(isInHeader ? withFilename(piece, field) : piece)
      pending = pending.subarray(length)
      isInHeader = !isInHeader
    }
    const kept = isInHeader ? MAX_HEADER_BYTES : delimiter.length - 1
    if (pending.length <= kept) return
    const known = isInHeader ? pending.length : pending.length - kept
    output.push(pending.subarray(0, known))
    pending = pending.subarray(known)
    isInHeader = false
  }

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      pending = Buffer.concat([pending, chunk])
      advance(this)
      done()
    },
    flush(done) {
      this.push(pending)
      done()
    },
  })
}

/** Only a field that has no filename of its own. Headers are ASCII here, or pass byte by byte. */
function withFilename(header: Buffer, field: string): Buffer {
  const text = header.toString('latin1')
  const [line] = /^content-disposition:[^\r\n]*/im.exec(text) ?? []
  if (line === undefined || !isField(line, field)) return header
  return Buffer.from(
    text.replace(line, () => `${line}; filename="${CONTENT_FILENAME}"`),
    'latin1',
  )
}

function isField(line: string, field: string): boolean {
  const [, type, name, ...more] = line.split(/[:;]/)
  return (
    more.length === 0 &&
    type?.trim().toLowerCase() === 'form-data' &&
    [`name="${field}"`, `name=${field}`].includes(name?.trim() ?? '')
  )
}
