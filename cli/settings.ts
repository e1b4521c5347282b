/** What the environment says, read once. */
import os from 'node:os'
import path from 'node:path'
import { usageError } from './failure.ts'

/** Where a service on this machine answers; DROPWAY_URL names any other. */
const DEFAULT_URL = 'https://localhost:8443'

export interface Settings {
  /** Origin of the service, without a trailing slash. */
  readonly url: string
  readonly token: string | undefined
  /** PEM file of a certificate authority to trust besides the usual ones. */
  readonly caFile: string | undefined
  /** Where credentials and unfinished uploads are kept. */
  readonly configDir: string
  readonly browser: string | undefined
}

type Env = Readonly<Record<string, string | undefined>>

export function readSettings(env: Env): Settings {
  return {
    url: originOf(env['DROPWAY_URL'] || DEFAULT_URL),
    token: env['DROPWAY_TOKEN']?.trim() || undefined,
    caFile: env['DROPWAY_CA_FILE'] || undefined,
    configDir: path.join(env['XDG_CONFIG_HOME'] || path.join(env['HOME'] || os.homedir(), '.config'), 'dropway'),
    browser: env['BROWSER'] || undefined,
  }
}

function originOf(text: string): string {
  try {
    const url = new URL(text)
    if (url.protocol === 'https:' || url.protocol === 'http:') return url.origin
  } catch {
    // Told below, together with the wrong protocol.
  }
  throw usageError(`DROPWAY_URL must be an address such as https://dropway.example, not "${text}".`)
}
