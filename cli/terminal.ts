/**
 * What the user sees. Results go to stdout, everything about the way there to stderr;
 * with `--json`, stdout carries exactly one JSON document.
 */
import readline from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'

type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number }

export interface Terminal {
  readonly json: boolean
  /** Somebody is watching: progress bars and questions make sense. */
  readonly interactive: boolean
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  /** A line of the result; silent with `--json`. */
  print(line?: string): void
  /** The result as data; silent without `--json`. */
  data(value: unknown): void
  /** A remark on stderr; silent with `--json`. */
  note(line: string): void
  /** Asks on the terminal; undefined without one. */
  ask(question: string, options?: { hidden?: boolean }): Promise<string | undefined>
}

interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
}

export function createTerminal({ stdin, stdout, stderr }: Streams, json: boolean): Terminal {
  const interactive = !json && stdin.isTTY === true && stderr.isTTY === true
  return {
    json,
    interactive,
    stdin,
    stdout,
    stderr,
    print: (line = '') => void (json || stdout.write(`${line}\n`)),
    data: (value) => void (json && stdout.write(`${JSON.stringify(value, null, 2)}\n`)),
    note: (line) => void (json || stderr.write(`${line}\n`)),
    async ask(question, { hidden = false } = {}) {
      if (!interactive) return undefined
      stderr.write(question)
      const prompt = readline.createInterface({ input: stdin, ...(hidden ? {} : { output: stderr }), terminal: true })
      try {
        return (await prompt.question('')).trim()
      } finally {
        prompt.close()
        if (hidden) stderr.write('\n')
      }
    },
  }
}

/** Columns aligned by their widest cell. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows) row.forEach((cell, column) => (widths[column] = Math.max(widths[column] ?? 0, cell.length)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
}

const UNITS = ['B', 'kB', 'MB', 'GB'] as const

export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000
    unit++
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`
}

/** What a service or a file name wrote must not steer the terminal. */
export function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are exactly what is removed
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, ' ')
}
