/**
 * Virtual time. Whatever happens is an event with a moment; between two events all promises settle. Nothing in a run
 * reads the machine's clock or its random numbers, so a run is a function of its seed.
 */
import type { Timers } from '../../shared/running/timers.ts'
import { createRandom, type Random } from '../support/random.ts'

interface Event {
  readonly at: number
  readonly order: number
  readonly happen: () => void
}

/** A simulated process: what it waits for never comes once it is dead. */
export interface Process {
  readonly name: string
  alive: boolean
}

/** A machine that is busy wakes its sleepers late. */
const MAX_OVERSLEEP_MS = 40

export class World {
  now = 0
  readonly random: Random
  readonly story: string[] = []
  /** No two lives of a database are the same, also of a primary that was left behind. */
  lives = 1
  /** Called after everything that happens. */
  onEvent: () => void = () => {}
  #events: Event[] = []
  #order = 0
  readonly #tells: boolean

  constructor(seed: number, tells: boolean) {
    this.random = createRandom(seed)
    this.#tells = tells
  }

  tell(what: () => string): void {
    if (this.#tells) this.story.push(`${String(Math.round(this.now)).padStart(6)} ${what()}`)
  }

  after(ms: number, happen: () => void): void {
    const event = { at: this.now + ms, order: this.#order++, happen }
    const events = this.#events
    let child = events.push(event) - 1
    while (child > 0) {
      const parent = (child - 1) >> 1
      if (!isBefore(event, events[parent]!)) break
      events[child] = events[parent]!
      child = parent
    }
    events[child] = event
  }

  #pop(): Event {
    const events = this.#events
    const first = events[0]!
    const last = events.pop()!
    if (events.length === 0) return first
    let parent = 0
    for (;;) {
      let child = 2 * parent + 1
      if (child >= events.length) break
      if (child + 1 < events.length && isBefore(events[child + 1]!, events[child]!)) child++
      if (!isBefore(events[child]!, last)) break
      events[parent] = events[child]!
      parent = child
    }
    events[parent] = last
    return first
  }

  /** Lets everything happen that is due by then. */
  async run(until: number): Promise<void> {
    while (this.#events.length > 0 && this.#events[0]!.at <= until) {
      const { at, happen } = this.#pop()
      this.now = at
      happen()
      await settled()
      this.onEvent()
    }
    this.now = until
  }

  /** The timers of one process. */
  timersOf(process: Process): Timers {
    const sleep = (ms: number): Promise<void> =>
      new Promise((resolve) => {
        this.after(ms + this.random.below(MAX_OVERSLEEP_MS), () => process.alive && resolve())
      })
    return {
      now: () => this.now,
      sleep,
      within: (ms, work) => Promise.race([work, sleep(ms).then(() => undefined)]),
      every: (ms, work) => {
        let stopped = false
        const beat = (): void => {
          if (stopped || !process.alive) return
          work()
          this.after(ms, beat)
        }
        this.after(ms, beat)
        return () => void (stopped = true)
      },
    }
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

/** Every promise that can settle has settled when the next tick begins: Node runs all microtasks between two ticks. */
function settled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve))
}
