/** `admin install-service`: works without a running stack. */
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { options, UsageError } from './command.ts'
import { folderProblem, installService, serviceRoles, unitText, type UnitSettings } from './service-unit.ts'

export const SERVICE_USAGE = `  install-service [--role all|control|edge] [--user <name>] [--directory <folder>] [--settings <file>] [--print]
      writes a hardened unit for systemd and a file for the settings, and says what to do next; --print only shows it
`

/** Resolves what is printed. */
export async function runServiceCommand(args: readonly string[]): Promise<string> {
  const { role, user, directory, settings, print } = options(args, {
    role: { type: 'string', default: 'all' },
    user: { type: 'string', default: 'dropway' },
    directory: { type: 'string', default: '/etc/systemd/system' },
    settings: { type: 'string', default: '/etc/dropway/dropway.env' },
    print: { type: 'boolean', default: false },
  })
  const known = serviceRoles.find((name) => name === role)
  if (known === undefined) throw new UsageError(`--role must be one of ${serviceRoles.join(', ')}.`)
  if (!/^[a-z_][a-z0-9_-]{0,31}$/.test(user)) throw new UsageError(`--user must be the name of a user, not "${user}".`)
  const unit: UnitSettings = {
    role: known,
    user,
    folder: path.resolve(fileURLToPath(new URL('../../../', import.meta.url))),
    node: process.execPath,
    environmentFile: path.resolve(settings),
  }
  if (print) return unitText(unit)
  const problem = folderProblem(unit.folder)
  if (problem !== undefined) throw new UsageError(problem)
  try {
    return `${JSON.stringify(await installService(unit, path.resolve(directory)), undefined, 2)}\n`
  } catch (error) {
    const { code, path: place } = error as NodeJS.ErrnoException
    if (code !== 'EACCES' && code !== 'EROFS') throw error
    throw new UsageError(`${place} cannot be written. Run it as root, or use --print.`)
  }
}
