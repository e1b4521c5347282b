/** A real SMTP server that tells what reached it, and calls back at each moment of a delivery. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import { readMessage, type ReadMessage } from '../../control/ground/mail/eml.ts'

/** Before the message, before the server's 250, and after it. */
export type Moment = 'recipient' | 'received' | 'accepted'

export interface ReceivedMail {
  readonly to: string
  readonly messageId: string
  readonly source: string
  readonly message: ReadMessage
}

export interface Delivery {
  readonly moment: Moment
  readonly to: string
  /** What the client called itself: `?name=` of its SMTP_URL. */
  readonly client: string
}

export async function startSmtpServer(onMoment: (delivery: Delivery) => void | Promise<void> = () => {}) {
  const received: ReceivedMail[] = []
  let answer: Error | undefined
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    onRcptTo({ address }, session, callback) {
      const delivery: Delivery = { moment: 'recipient', to: address, client: session.hostNameAppearsAs }
      void Promise.resolve(onMoment(delivery)).then(() => callback(), callback)
    },
    onData(stream, session, callback) {
      const to = session.envelope.rcptTo[0]!.address
      const client = session.hostNameAppearsAs
      const whole = text(stream).catch(() => undefined)
      void whole.then(async (source) => {
        // A client that was killed while it spoke.
        if (source === undefined) return
        if (answer) return callback(answer)
        const messageId = /^message-id: (.*)$/im.exec(source)?.[1] ?? ''
        received.push({ to, messageId, source, message: readMessage(source) })
        await onMoment({ moment: 'received', to, client })
        callback()
        await onMoment({ moment: 'accepted', to, client })
      })
    },
  })
  // A client that is killed resets its connection.
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  return {
    received,
    url: `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`,
    answerWith: (error: Error | undefined) => void (answer = error),
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}
