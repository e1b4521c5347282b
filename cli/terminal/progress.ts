/**
 * How far a deploy has come: one line that is drawn over where a person watches a terminal, a line now and then where
 * it goes to a log, so that a long upload does not look dead and a short one leaves no trace.
 */
import { countOf, type Terminal } from './terminal.ts'
import { bytesInWords } from '../../shared/values/sizes.ts'

const REDRAW_MS = 80
const LOG_EVERY_MS = 10_000
const MIN_BAR_CHARS = 8
const MAX_BAR_CHARS = 24
/** The rate is a guess before this time. */
const RATE_AFTER_MS = 1000

export interface Progress {
  /** Another phase: `Reading`, `Sending`. */
  begin(label: string, files: number, bytes: number): void
  advance(bytes: number, files?: number): void
  /** Leaves no unfinished line behind. */
  finish(): void
}

export interface PhaseState {
  readonly label: string
  readonly files: number
  readonly bytes: number
  readonly filesDone: number
  readonly bytesDone: number
  readonly elapsedMs: number
}

type Phase = { -readonly [Fact in Exclude<keyof PhaseState, 'elapsedMs'>]: PhaseState[Fact] }

export function createProgress(terminal: Terminal, now: () => number = Date.now): Progress {
  let phase: Phase | undefined
  let begunAt = 0
  let shownAt = 0
  let isDrawn = false

  function show(current: Phase): void {
    shownAt = now()
    const state = { ...current, elapsedMs: shownAt - begunAt }
    if (terminal.animated) {
      terminal.stderr.write(`\r${drawnLine(state, terminal.width())}\u001b[K`)
      isDrawn = true
    } else terminal.note(loggedLine(state))
  }

  function finish(): void {
    if (isDrawn) terminal.stderr.write('\r\u001b[K')
    isDrawn = false
    phase = undefined
  }

  return {
    begin(label, files, bytes) {
      finish()
      phase = { label, files, bytes, filesDone: 0, bytesDone: 0 }
      begunAt = shownAt = now()
      if (terminal.animated && files > 0) show(phase)
    },
    advance(bytes, files = 0) {
      if (phase === undefined) return
      phase.bytesDone += bytes
      phase.filesDone += files
      if (now() - shownAt >= (terminal.animated ? REDRAW_MS : LOG_EVERY_MS)) show(phase)
    },
    finish,
  }
}

function factsOf({ files, bytes, filesDone, bytesDone, elapsedMs }: PhaseState): string[] {
  const facts = [`${bytesInWords(bytesDone)} of ${bytesInWords(bytes)}`, `${filesDone} of ${countOf(files, 'file')}`]
  if (elapsedMs < RATE_AFTER_MS || bytesDone <= 0) return facts
  const perSecond = bytesDone / (elapsedMs / 1000)
  return [...facts, `${bytesInWords(perSecond)}/s`, `${formatSeconds((bytes - bytesDone) / perSecond)} left`]
}

const shareOf = ({ bytes, bytesDone }: PhaseState): number =>
  bytes === 0 ? 1 : Math.max(0, Math.min(1, bytesDone / bytes))

/** The line as far as it fits into one column less than there are: a full line would wrap. */
export function drawnLine(state: PhaseState, columns: number): string {
  const room = Math.max(1, columns - 1)
  const head = `${state.label} `
  const percent = ` ${Math.floor(shareOf(state) * 100)} %`
  const barChars = Math.min(MAX_BAR_CHARS, room - head.length - percent.length)
  if (barChars < MIN_BAR_CHARS) return `${head.trimEnd()}${percent}`.slice(0, room)
  const filled = Math.round(shareOf(state) * barChars)
  let line = `${head}${'█'.repeat(filled)}${'░'.repeat(barChars - filled)}${percent}`
  for (const [index, fact] of factsOf(state).entries()) {
    const longer = `${line}${index === 0 ? '  ' : ', '}${fact}`
    if (longer.length > room) break
    line = longer
  }
  return line
}

export function loggedLine(state: PhaseState): string {
  return [`${state.label}: ${Math.floor(shareOf(state) * 100)} %`, ...factsOf(state)].join(', ')
}

function formatSeconds(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`
}
