/** What was mailed: without a mail server, mails are files of the stack. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { until } from './processes.ts'
import type { Stack } from './stack.ts'

/** The newest link of a kind (`/verify`, `/reset`, …) that was mailed to an address, by a mail that says this. */
export async function mailedLink(stack: Stack, email: string, kind: string, saying = ''): Promise<string> {
  const folder = path.join(stack.dataDir, 'mail')
  let link: string | undefined
  await until(() => {
    link = newestLink(folder, kind, [email, saying])
    return link !== undefined
  }, `a mail with a ${kind} link for ${email}`)
  return link!
}

function newestLink(folder: string, kind: string, words: readonly string[]): string | undefined {
  for (const file of readMails(folder)) {
    const mail = readFileSync(path.join(folder, file), 'utf8')
      .replace(/=\r?\n/g, '')
      .replaceAll('=3D', '=')
    const link = new RegExp(`https://[^\\s"<]+${kind}\\?token=[\\w-]+`).exec(mail)?.[0]
    if (words.every((word) => mail.includes(word)) && link !== undefined) return link
  }
  return undefined
}

function readMails(folder: string): string[] {
  try {
    // One that is being written has another name.
    const names = readdirSync(folder).filter((name) => name.endsWith('.eml'))
    return names.toSorted().toReversed()
  } catch {
    // The folder appears with the first mail.
    return []
  }
}
