/** Reads answers of HTTP/1.1 from a connection, byte by byte as they come, and says what is wrong with them. */
import { CONTENT, type PlannedAnswer } from './schedule.ts'

const HEAD_END = Buffer.from('\r\n\r\n')

type State =
  | { readonly kind: 'head' }
  | { readonly kind: 'body'; readonly left: number }
  /** A line that says how long the next chunk is. */
  | { readonly kind: 'chunk' }
  | { readonly kind: 'chunk data'; readonly left: number }
  /** The line's end behind a chunk; behind the last one the answer is over. */
  | { readonly kind: 'chunk end'; readonly isLast: boolean }

export class AnswerReader {
  /** Answers that came whole. */
  whole = 0
  violation: string | undefined
  readonly #answers: readonly PlannedAnswer[]
  readonly #onWhole: () => void
  #state: State = { kind: 'head' }
  #pending: Buffer = Buffer.alloc(0)
  #bodyBytes = 0

  constructor(answers: readonly PlannedAnswer[], onWhole: () => void) {
    this.#answers = answers
    this.#onWhole = onWhole
  }

  /** Of the next answer, nothing or only its beginning has come. */
  read(bytes: Buffer): void {
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes])
    while (this.violation === undefined && this.#step()) continue
  }

  /** False when more bytes are needed. */
  #step(): boolean {
    const state = this.#state
    switch (state.kind) {
      case 'head':
        return this.#readHead()
      case 'body':
        return this.#readBody(state.left, (left) => ({ kind: 'body', left }))
      case 'chunk':
        return this.#readChunkSize()
      case 'chunk data':
        return this.#readBody(state.left, (left) => ({ kind: 'chunk data', left }))
      case 'chunk end':
        return this.#readChunkEnd(state.isLast)
      default:
        return state satisfies never
    }
  }

  #readHead(): boolean {
    const end = this.#pending.indexOf(HEAD_END)
    if (end === -1) {
      if (this.#pending.length > 4096) this.#refuse('no head where one should be')
      return false
    }
    const head = this.#take(end + HEAD_END.length).toString('latin1')
    if (!head.startsWith('HTTP/1.1 200 OK\r\n')) return this.#refuse(`no head of an answer: ${head.slice(0, 60)}`)
    const index = /^x-answer: (\d+)\r$/im.exec(head)?.[1]
    if (Number(index) !== this.whole) return this.#refuse(`answer ${index} instead of ${this.whole}`)
    this.#bodyBytes = 0
    const length = /^content-length: (\d+)\r$/im.exec(head)?.[1]
    if (length !== undefined) this.#state = { kind: 'body', left: Number(length) }
    else if (/^transfer-encoding: chunked\r$/im.test(head)) this.#state = { kind: 'chunk' }
    else return this.#refuse('an answer without a length')
    return this.#state.kind === 'body' && this.#state.left === 0 ? this.#finish() : true
  }

  #readBody(left: number, next: (left: number) => State): boolean {
    if (this.#pending.length === 0) return false
    const part = this.#take(Math.min(left, this.#pending.length))
    const answer = this.#answers[this.whole]
    const problem = answer === undefined ? 'one too many' : bodyProblem(answer, this.#bodyBytes, part)
    if (problem !== undefined) return this.#refuse(`answer ${this.whole}: ${problem}`)
    this.#bodyBytes += part.length
    const rest = left - part.length
    this.#state = next(rest)
    if (rest > 0) return false
    if (this.#state.kind === 'body') return this.#finish()
    this.#state = { kind: 'chunk end', isLast: false }
    return true
  }

  #readChunkSize(): boolean {
    const end = this.#pending.indexOf('\r\n')
    if (end === -1) return this.#pending.length > 10 ? this.#refuse('no size of a chunk') : false
    const text = this.#take(end + 2)
      .toString('latin1')
      .trim()
    if (!/^[0-9a-f]+$/i.test(text)) return this.#refuse(`no size of a chunk: ${text}`)
    const left = Number.parseInt(text, 16)
    this.#state = left === 0 ? { kind: 'chunk end', isLast: true } : { kind: 'chunk data', left }
    return true
  }

  #readChunkEnd(isLast: boolean): boolean {
    if (this.#pending.length < 2) return false
    if (this.#take(2).toString('latin1') !== '\r\n') return this.#refuse('a chunk without an end')
    if (isLast) return this.#finish()
    this.#state = { kind: 'chunk' }
    return true
  }

  #finish(): boolean {
    const size = this.#answers[this.whole]?.size
    if (this.#bodyBytes !== size)
      return this.#refuse(`answer ${this.whole} looks whole with ${this.#bodyBytes} of ${size}`)
    this.whole += 1
    this.#state = { kind: 'head' }
    this.#onWhole()
    return true
  }

  #take(bytes: number): Buffer {
    const taken = this.#pending.subarray(0, bytes)
    this.#pending = this.#pending.subarray(bytes)
    return taken
  }

  #refuse(why: string): false {
    this.violation = why
    return false
  }
}

/** What is wrong with a part of a body that begins at `at`. */
export function bodyProblem({ start, size }: PlannedAnswer, at: number, part: Buffer): string | undefined {
  if (at + part.length > size) return `${at + part.length} bytes instead of ${size}`
  return part.equals(CONTENT.subarray(start + at, start + at + part.length)) ? undefined : `other bytes after ${at}`
}
