/** What was mailed: without a mail server, mails are files of the stack. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { readMessage, type ReadMessage } from '../../control/ground/mail/eml.ts'
import { until } from './processes.ts'
import type { Stack } from './stack.ts'

/** All mails, or those to an address, the oldest first. One that is being written has another name. */
export function mailsOf({ dataDir }: Pick<Stack, 'dataDir'>, address?: string): ReadMessage[] {
  const folder = path.join(dataDir, 'mail')
  return namesIn(folder)
    .filter((name) => name.endsWith('.eml'))
    .toSorted()
    .map((name) => readMessage(readFileSync(path.join(folder, name), 'utf8')))
    .filter(({ to }) => address === undefined || to === address)
}

/** The newest link of a kind (`/verify`, `/reset`, …) that was mailed to an address, by a mail that says this. */
export async function mailedLink(
  stack: Pick<Stack, 'dataDir'>,
  email: string,
  kind: string,
  saying = '',
): Promise<string> {
  const pattern = new RegExp(`https://\\S+${kind}\\?token=[\\w-]+`)
  const newest = (): string | undefined =>
    mailsOf(stack, email)
      .filter(({ text }) => text.includes(saying))
      .flatMap(({ text }) => pattern.exec(text)?.[0] ?? [])
      .at(-1)
  await until(() => newest() !== undefined, `a mail with a ${kind} link for ${email}`)
  return newest()!
}

/** The folder appears with the first mail. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
