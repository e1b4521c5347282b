/** Where mails go: a mail server, or files on one's own machine. */
import { mkdir, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import nodemailer from 'nodemailer'
import { SECOND_MS } from '../../shared/clock.ts'
import { composeMessage, type Message } from './message.ts'

export interface MailSink {
  /**
   * Resolves when the mail has been taken over. `handOver` is called, and awaited, just before the point of no
   * return: until then nobody has the mail, from then on the receiver may. When it throws, nothing was sent.
   */
  deliver(message: Message, handOver: () => Promise<void>): Promise<void>
  close(): void
}

export function createSmtpSink(smtpUrl: string): MailSink {
  const transport = nodemailer.createTransport({
    url: smtpUrl,
    connectionTimeout: 10 * SECOND_MS,
    greetingTimeout: 10 * SECOND_MS,
    socketTimeout: 30 * SECOND_MS,
  })
  return {
    async deliver(message, handOver) {
      const bytes = await composeMessage(message)
      await transport.sendMail({
        envelope: { from: message.from, to: message.to },
        raw: Readable.from(withFinalStep(bytes, handOver)),
      })
    },
    close: () => transport.close(),
  }
}

/** SMTP accepts a mail with the dot after its last line, and that dot is written when this stream ends. */
async function* withFinalStep(bytes: Buffer, finalStep: () => Promise<void>): AsyncGenerator<Buffer> {
  yield bytes
  await finalStep()
}

/** One file per mail, named by its id: writing it again changes nothing, so no step here is without return. */
export function createFileSink(folder: string): MailSink {
  return {
    async deliver(message) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const file = path.join(folder, `${message.id}.eml`)
      await writeFile(`${file}.${process.pid}.part`, await composeMessage(message), { mode: 0o600 })
      await rename(`${file}.${process.pid}.part`, file)
    },
    close() {},
  }
}
