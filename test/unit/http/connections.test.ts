/** What a server that stops does with each of its connections. */
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { Connections } from '../../../control/ground/uws/connections.ts'

/** Says what was done to it, and closes when it is told to. */
class FakeSocket extends EventEmitter {
  readonly done: string[] = []
  writableEnded = false

  destroy(): void {
    this.done.push('destroyed')
  }

  destroySoon(): void {
    this.done.push('ended')
  }
}

function connect(connections: Connections): FakeSocket {
  const socket = new FakeSocket()
  connections.add(socket as unknown as Socket)
  return socket
}

test('one that is owed nothing goes at once, one that is owed an answer with it, a refused one by itself', () => {
  const connections = new Connections()
  const idle = connect(connections)
  const owed = connect(connections)
  const answer = new EventEmitter()
  connections.owe(owed as unknown as Socket, answer as ServerResponse)
  // Its answer was given; what is left of its body is still read, so that its caller gets the answer.
  const refused = connect(connections)
  refused.writableEnded = true
  connections.close()
  expect([idle.done, owed.done, refused.done]).toEqual([['destroyed'], [], []])
  answer.emit('close')
  expect(owed.done).toEqual(['ended'])
})

test('one that fails is gone as well, and the others are waited for', async () => {
  const connections = new Connections()
  const failing = connect(connections)
  const slow = connect(connections)
  let isOver = false
  const ended = connections.ended().then(() => (isOver = true))
  failing.on('error', () => {})
  failing.emit('error', new Error('read ECONNRESET'))
  failing.emit('close', true)
  await new Promise(setImmediate)
  expect(isOver).toBe(false)
  slow.emit('close', false)
  await ended
})
