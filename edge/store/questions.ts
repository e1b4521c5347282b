/** What one worker was asked and has not answered yet. A worker that ends has answered everything with undefined. */
export interface Questions<Answer> {
  /** `send` tells the worker under which id it is asked. */
  ask(send: (id: number) => void): Promise<Answer | undefined>
  answered(id: number, answer: Answer): void
  end(): void
  isWaiting(): boolean
}

export function createQuestions<Answer>(): Questions<Answer> {
  const open = new Map<number, (answer: Answer | undefined) => void>()
  let nextId = 0
  return {
    ask(send) {
      const id = nextId++
      const { promise, resolve } = Promise.withResolvers<Answer | undefined>()
      open.set(id, resolve)
      send(id)
      return promise
    },
    answered(id, answer) {
      open.get(id)?.(answer)
      open.delete(id)
    },
    end() {
      for (const resolve of open.values()) resolve(undefined)
      open.clear()
    },
    isWaiting: () => open.size > 0,
  }
}
