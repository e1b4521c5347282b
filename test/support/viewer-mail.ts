/** What viewers get by mail: codes, and links at the drop's own address. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { until } from './processes.ts'
import type { Stack } from './stack.ts'

export interface ViewerMail {
  readonly subject: string
  readonly code: string | undefined
  /** The link behind the button. */
  readonly link: string | undefined
  /** All of it, both forms. */
  readonly text: string
}

/** Mails to an address, the oldest first. */
export function viewerMails(stack: Pick<Stack, 'dataDir'>, email: string): ViewerMail[] {
  const folder = path.join(stack.dataDir, 'mail')
  return mailFiles(folder).flatMap((name) => {
    const mail = readFileSync(path.join(folder, name), 'utf8')
      .replace(/=\r?\n/g, '')
      .replaceAll('=3D', '=')
    if (!new RegExp(`^To: .*${email.replaceAll('.', '\\.')}`, 'im').test(mail)) return []
    const subject = /^Subject: (.*)$/im.exec(mail)?.[1]?.trim() ?? ''
    const link = /https:\/\/[^\s"<]+(?:\/\.dropway\/enter\/|\/access-request\?token=)[^\s"<]+/.exec(mail)?.[0]
    return [{ subject, code: /\b(\d{6}) is your code/.exec(subject)?.[1], link, text: mail }]
  })
}

/** Waits until so many mails have come to the address; returns the last. */
export async function viewerMail(stack: Pick<Stack, 'dataDir'>, email: string, count = 1): Promise<ViewerMail> {
  await until(() => viewerMails(stack, email).length >= count, `mail ${count} for ${email}`)
  return viewerMails(stack, email)[count - 1]!
}

function mailFiles(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.eml'))
      .toSorted()
  } catch {
    // The folder appears with the first mail.
    return []
  }
}
