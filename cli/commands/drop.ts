import path from 'node:path'
import { stat } from 'node:fs/promises'
import { renderUnicodeCompact } from 'uqr'
import type { Command } from '../command.ts'
import { usageError } from '../failure.ts'
import { fileForm } from '../multipart.ts'

interface AnonymousDrop {
  readonly url: string
  readonly id: string
  readonly slug: string
  readonly claim_url: string
  readonly expires_at: string
}

export const drop: Command = {
  name: 'drop',
  summary: 'Publish one page without an account, for seven days',
  usage: 'drop <file.html|file.md>',
  details: ['Prints the address with a QR code, and the link that makes the drop yours.'],
  maxPositionals: 1,
  async run({ api, cwd, terminal }, args) {
    const file = args.positionals[0]
    if (file === undefined) throw usageError('Name the page: dropway drop page.html')
    const target = path.resolve(cwd, file)
    const stats = await stat(target).catch(() => undefined)
    if (!stats?.isFile()) throw usageError(`"${file}" is not a file. A folder needs an account: dropway deploy ${file}`)
    const made = await api.call<AnonymousDrop>('POST', '/drops', { anonymous: true, ...(await fileForm(target)) })
    terminal.print(renderUnicodeCompact(made.url))
    terminal.print(
      `Lives until ${made.expires_at.slice(0, 16).replace('T', ' ')} UTC. To keep it, claim it with an account:`,
    )
    terminal.print(made.claim_url)
    terminal.print()
    terminal.print(made.url)
    terminal.data(made)
  },
}
