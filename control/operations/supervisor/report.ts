/** What the operator sees: one line per event; on a terminal a spinner while something starts. */

export interface Report {
  starting(name: string): void
  started(name: string, tookMs: number, detail?: string): void
  crashed(name: string, restartDelayMs: number): void
  restarted(name: string): void
  problem(name: string, error: unknown): void
  /** A line that a plane wrote: warnings and errors are shown, the rest is in its log file. */
  planeLine(name: string, line: string): void
  ready(baseUrl: string): void
  stopping(): void
  stopped(name: string, tookMs: number): void
  /** A sentence to the operator. */
  say(text: string): void
}

/** The part of a tty.WriteStream that is needed here. */
export interface Screen {
  readonly isTTY?: boolean
  write(text: string): unknown
}

const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const SPINNER_INTERVAL_MS = 80
const CLEAR_LINE = '\r\u001b[2K'
const NAME_WIDTH = 9
/** pino's number for `warn`. */
const WARN_LEVEL = 40

export function createReport(screen: Screen): Report {
  let spinner: NodeJS.Timeout | undefined

  const line = (text: string) => {
    stopSpinner()
    screen.write(`${text}\n`)
  }
  const about = (name: string, text: string) => line(`${name.padEnd(NAME_WIDTH)}${text}`)

  function stopSpinner(): void {
    if (!spinner) return
    clearInterval(spinner)
    spinner = undefined
    screen.write(CLEAR_LINE)
  }

  function startSpinner(text: string): void {
    stopSpinner()
    if (!screen.isTTY) return
    let frame = 0
    spinner = setInterval(
      () => screen.write(`${CLEAR_LINE}${SPINNER[frame++ % SPINNER.length]} ${text}`),
      SPINNER_INTERVAL_MS,
    )
  }

  return {
    starting: (name) => startSpinner(`starting ${name}`),
    started: (name, tookMs, detail) => about(name, `started in ${seconds(tookMs)}${detail ? ` (${detail})` : ''}`),
    crashed: (name, delayMs) =>
      about(name, `ended unexpectedly; starting it again${delayMs ? ` in ${seconds(delayMs)}` : ''}`),
    restarted: (name) => about(name, 'is back'),
    problem: (name, error) => about(name, (error as Error).message),
    planeLine(name, raw) {
      const text = readablePlaneLine(raw)
      if (text !== undefined) about(name, text)
    },
    ready: (baseUrl) => line(`ready ${baseUrl}`),
    stopping: () => line('stopping'),
    stopped: (name, tookMs) => about(name, `stopped in ${seconds(tookMs)}`),
    say: line,
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

/** A JSON log line as a sentence, undefined below warning level. Anything else is a process's last words: shown as they are. */
export function readablePlaneLine(raw: string): string | undefined {
  const entry = parseLogLine(raw)
  if (!entry) return raw.trim() === '' ? undefined : raw
  if (entry.level < WARN_LEVEL) return undefined
  const kind = entry.level > WARN_LEVEL ? 'error' : 'warning'
  const cause = entry.err?.message
  return `${kind}: ${[entry.msg, cause].filter((part) => part !== undefined && part !== '').join(': ')}`
}

interface LogLine {
  readonly level: number
  readonly msg?: string
  readonly err?: { readonly message?: string }
}

function parseLogLine(raw: string): LogLine | undefined {
  if (!raw.startsWith('{')) return undefined
  try {
    const entry = JSON.parse(raw) as Partial<LogLine>
    return typeof entry.level === 'number' ? (entry as LogLine) : undefined
  } catch {
    return undefined
  }
}
