/** Where mails go: a mail server, or files on one's own machine. */
import { mkdir, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import nodemailer from 'nodemailer'
import { SECOND_MS } from '../../../shared/running/clock.ts'
import { composeMessage, type Message } from './message.ts'

export interface Handover {
  /** Awaited before the point of no return: until then the mail has not left. When it throws, nothing was sent. */
  prepare(): Promise<void>
  /** Called together with the point of no return, in one tick: from then on the receiver may have the mail. */
  happens(): void
}

export interface MailSink {
  /** Resolves when the mail has been taken over. */
  deliver(message: Message, handover: Handover): Promise<void>
  close(): void
}

export function createSmtpSink(smtpUrl: string): MailSink {
  const transport = nodemailer.createTransport({
    url: smtpUrl,
    connectionTimeout: 10 * SECOND_MS,
    greetingTimeout: 10 * SECOND_MS,
    socketTimeout: 30 * SECOND_MS,
  })
  // Otherwise it would read ahead through a buffer of its own, to the end, before the server has even greeted.
  transport.use('stream', (mail, done) => {
    mail.message.createReadStream = () => mail.data.raw as Readable
    done()
  })
  return {
    async deliver(message, handover) {
      const bytes = await composeMessage(message)
      await transport.sendMail({
        envelope: { from: message.from, to: message.to },
        raw: Readable.from(upToFinalDot(bytes, handover)),
      })
    },
    close: () => transport.close(),
  }
}

/** SMTP accepts a mail with the dot after its last line, and that dot is written in the tick in which this ends. */
async function* upToFinalDot(bytes: Buffer, handover: Handover): AsyncGenerator<Buffer> {
  yield bytes
  await handover.prepare()
  handover.happens()
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
