/** Where mails go: a mail server, or files on one's own machine. */
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { SECOND_MS } from '../../../shared/running/clock.ts'
import { composeMessage, type Message } from './message.ts'

export interface MailSink {
  /** Resolves when the receiver has taken the mail over. */
  deliver(message: Message): Promise<void>
  close(): void
}

/** Loaded only where there is a mail server. */
const load = createRequire(import.meta.url)

export function createSmtpSink(smtpUrl: string): MailSink {
  const nodemailer = load('nodemailer') as typeof import('nodemailer')
  const transport = nodemailer.createTransport({
    url: smtpUrl,
    connectionTimeout: 10 * SECOND_MS,
    greetingTimeout: 10 * SECOND_MS,
    socketTimeout: 30 * SECOND_MS,
  })
  return {
    async deliver(message) {
      const raw = await composeMessage(message)
      await transport.sendMail({ envelope: { from: message.from, to: message.to }, raw })
    },
    close: () => transport.close(),
  }
}

/** One file per mail, named by its id: writing it again changes nothing. */
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
