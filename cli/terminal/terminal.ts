/**
 * What the user sees. Results go to stdout, everything about the way there to stderr;
 * with `--json`, stdout carries exactly one JSON document. Never a colour; control sequences only where a person
 * watches a terminal that knows them and NO_COLOR does not ask for plain text.
 */
import { once } from 'node:events'
import readline from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'

type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number }

export interface Terminal {
  readonly json: boolean
  /** A person is there to answer questions. */
  readonly interactive: boolean
  /** Lines on stderr may be drawn over: a person watches, and the terminal can. */
  readonly animated: boolean
  /** Pictures made of characters make sense on stdout: a QR code never goes into a pipe. */
  readonly pictures: boolean
  /** CI: no one answers, and the script has said what it wants. */
  readonly unattended: boolean
  /** Columns of stderr. */
  width(): number
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  /** A line of the result; silent with `--json`. */
  print(line?: string): void
  /** The result as data; silent without `--json`, and after the first document. */
  data(value: unknown): void
  /** A remark on stderr; silent with `--json`. */
  note(line: string): void
  /** Asks on the terminal; undefined without one. */
  ask(question: string, options?: { hidden?: boolean }): Promise<string | undefined>
  /** Yes or no; undefined when there is no one to ask. */
  confirm(question: string): Promise<boolean | undefined>
  /** Last words when the user presses Ctrl-C from now on. */
  onInterrupt(words: string | undefined): void
  /** What `onInterrupt` was given last. */
  interruptWords(): string | undefined
}

export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
}

const DEFAULT_COLUMNS = 80

export function createTerminal({ stdin, stdout, stderr, env }: Streams, json: boolean): Terminal {
  const isCi = Boolean(env['CI']) && env['CI'] !== 'false'
  const isPlain = env['TERM'] === 'dumb' || Boolean(env['NO_COLOR'])
  const interactive = !json && !isCi && stdin.isTTY === true && stderr.isTTY === true
  let lastWords: string | undefined
  let hasData = false

  async function ask(question: string, { hidden = false } = {}): Promise<string | undefined> {
    if (!interactive) return undefined
    // A hidden answer is read key by key and without an output, so that neither readline nor the terminal echoes it;
    // the question is then ours to write.
    if (hidden) stderr.write(question)
    const prompt = readline.createInterface({
      input: stdin,
      ...(hidden ? {} : { output: stderr }),
      terminal: hidden || !isPlain,
    })
    // In raw mode Ctrl-C arrives as a key: it means the whole command here too.
    prompt.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    // Ctrl-D and the end of the input leave without an answer: some versions of Node reject, others never tell.
    const left = once(prompt, 'close').then(() => '')
    const answer = prompt.question(hidden ? '' : question).catch((error: Error) => {
      if (error.name === 'AbortError') return ''
      throw error
    })
    try {
      return (await Promise.race([answer, left])).trim()
    } finally {
      prompt.close()
      if (hidden) stderr.write('\n')
    }
  }

  return {
    json,
    interactive,
    unattended: isCi,
    animated: !json && !isCi && !isPlain && stderr.isTTY === true,
    pictures: !json && env['TERM'] !== 'dumb' && stdout.isTTY === true,
    width: () => stderr.columns || DEFAULT_COLUMNS,
    stdin,
    stdout,
    stderr,
    print: (line = '') => void (json || stdout.write(`${line}\n`)),
    data(value) {
      if (!json || hasData) return
      hasData = true
      stdout.write(`${JSON.stringify(value, null, 2)}\n`)
    },
    note: (line) => void (json || stderr.write(`${line}\n`)),
    ask,
    async confirm(question) {
      const answer = await ask(`${question} [y/N] `)
      return answer === undefined ? undefined : /^y(?:es)?$/i.test(answer)
    },
    onInterrupt: (words) => void (lastWords = words),
    interruptWords: () => lastWords,
  }
}

/** Columns aligned by their widest cell. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows) row.forEach((cell, column) => (widths[column] = Math.max(widths[column] ?? 0, cell.length)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** `2026-11-15 16:31`. */
export function formatTime(iso: string): string {
  return iso.slice(0, 16).replace('T', ' ')
}

export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** What a service or a file name wrote must not steer the terminal. */
export function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are exactly what is removed
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, ' ')
}
