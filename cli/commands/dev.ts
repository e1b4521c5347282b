import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import type { Command } from '../terminal/command.ts'
import { CliError, exitCodes, usageError } from '../terminal/failure.ts'
import { findSource } from '../content/source.ts'
import { plain } from '../terminal/terminal.ts'

const DEFAULT_PORT = 4000

export const dev: Command = {
  kind: 'local',
  name: 'dev',
  summary: 'Serve a folder on this machine with the rules of the service',
  usage: 'dev [folder] [--port <number>] [--spa]',
  options: {
    port: {
      type: 'string',
      value: 'number',
      help: `Where to listen; ${DEFAULT_PORT} unless told otherwise, 0 for any`,
    },
    spa: { type: 'boolean', help: 'Unknown paths serve index.html' },
  },
  details: [
    'Index pages (Markdown too), clean URLs, _redirects, _headers, 404.html, ranges and the single-page fallback work as they do when published.',
    'The folder is found as with deploy. Changes show with the next request. Ctrl-C stops it.',
  ],
  maxPositionals: 1,
  async run({ cwd, terminal }, args) {
    const port = args.text('port') ?? String(DEFAULT_PORT)
    if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw usageError('--port takes a number, such as 4000.')
    const source = await findSource(cwd, args.positionals[0])
    if (source.kind !== 'folder') throw usageError('Name a folder: dropway dev dist')
    // Other commands need not wait for what it brings along.
    const { createDevServer, ruleMistakes } = await import('../content/dev-server.ts')
    for (const { path: file, line, message } of await ruleMistakes(source.path))
      terminal.note(`${file}:${line}: ${plain(message)}`)
    const server = createDevServer({
      root: source.path,
      spaFallback: args.flag('spa'),
      onRequest: (method, target, status) => terminal.note(`${status} ${method} ${plain(target)}`),
    })
    server.listen(Number(port), '127.0.0.1')
    await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
      throw new CliError(
        error.code === 'EADDRINUSE' ? `Port ${port} is in use. Choose another with --port.` : error.message,
        exitCodes.failed,
        'port_in_use',
      )
    })
    const url = `http://localhost:${(server.address() as AddressInfo).port}`
    terminal.note(`Serving ${path.relative(cwd, source.path) || 'this folder'}; Ctrl-C stops it.`)
    terminal.print(url)
    terminal.data({ url, folder: source.path })
    await once(server, 'close')
  },
}
