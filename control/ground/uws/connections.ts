/**
 * The connections of a server, and how many answers each is owed that have not left whole. node:http ends a connection as
 * idle when its answer was given, though a slow caller has not taken it; here it ends with the answer.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export class Connections {
  readonly #owed = new Map<Socket, number>()
  #isClosing = false

  add(socket: Socket): void {
    this.#owed.set(socket, 0)
    socket.once('close', () => this.#owed.delete(socket))
  }

  owe(socket: Socket, answer: ServerResponse): void {
    this.#change(socket, 1)
    // It has left, or its connection is gone.
    answer.once('close', () => this.#change(socket, -1))
  }

  #change(socket: Socket, by: 1 | -1): void {
    const before = this.#owed.get(socket)
    if (before === undefined) return
    this.#owed.set(socket, before + by)
    if (this.#isClosing && before + by === 0) socket.destroySoon()
  }

  /** Ends each as soon as it is owed nothing. One that is ended in stages, after a refusal, goes by itself. */
  close(): void {
    this.#isClosing = true
    for (const [socket, owed] of this.#owed) if (owed === 0 && !socket.writableEnded) socket.destroy()
  }

  /** Resolves when all are gone, however they went. */
  async ended(): Promise<void> {
    await Promise.all(
      Array.from(this.#owed.keys(), (socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()))),
    )
  }
}
