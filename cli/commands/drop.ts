import path from 'node:path'
import { stat } from 'node:fs/promises'
import { renderUnicodeCompact } from 'uqr'
import type { Command } from '../terminal/command.ts'
import { usageError } from '../terminal/failure.ts'
import type { AnonymousDrop } from '../terminal/json-output.ts'
import { fileForm } from '../service/multipart.ts'
import { formatTime } from '../terminal/terminal.ts'

export const drop: Command = {
  kind: 'service',
  patient: true,
  name: 'drop',
  summary: 'Publish one page without an account, for seven days',
  usage: 'drop <file.html|file.md> | drop --delete <claim link>',
  options: { delete: { type: 'boolean', help: 'delete a drop by its claim link, at once and for good' } },
  details: ['Prints the address, in a terminal with a QR code, and the link that makes the drop yours.'],
  maxPositionals: 1,
  async run({ api, cwd, terminal, url }, args) {
    const file = args.positionals[0]
    if (args.flag('delete')) {
      await api.call('DELETE', `/drops?token=${encodeURIComponent(claimToken(file, url))}`, { anonymous: true })
      terminal.print('Deleted.')
      return terminal.data({ deleted: true })
    }
    if (file === undefined) throw usageError('Name the page: dropway drop page.html')
    const target = path.resolve(cwd, file)
    const stats = await stat(target).catch(() => undefined)
    if (!stats?.isFile()) throw usageError(`"${file}" is not a file. A folder needs an account: dropway deploy ${file}`)
    const form = fileForm({ path: path.basename(target), file: target, size: stats.size })
    const made = await api.call<AnonymousDrop>('POST', '/drops', { anonymous: true, ...form })
    if (terminal.pictures) terminal.print(renderUnicodeCompact(made.url))
    terminal.print(`Lives until ${formatTime(made.expires_at)} UTC. To keep it, claim it with an account:`)
    terminal.print(made.claim_url)
    terminal.print()
    terminal.print(made.url)
    terminal.data(made)
  },
}

function claimToken(link: string | undefined, url: string): string {
  const address = link !== undefined && URL.canParse(link) ? new URL(link) : undefined
  const token = address?.searchParams.get('token')
  if (!address || !token)
    throw usageError('Give the link that was printed with the drop: dropway drop --delete <claim link>')
  if (address.origin !== url)
    throw usageError(`This link belongs to ${address.origin}: set DROPWAY_URL=${address.origin}`)
  return token
}
