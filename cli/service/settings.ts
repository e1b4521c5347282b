/** What the environment says, and what `login` remembered; read once. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { usageError } from '../terminal/failure.ts'
import { proxyFor } from './proxy.ts'
import { readWorkflowIdentity, type WorkflowIdentity } from './sign-in/workflow.ts'

export interface Settings {
  /** DROPWAY_URL, or the service of the last `login`; undefined when neither is there. */
  readonly url: string | undefined
  readonly token: string | undefined
  /** What the forge says of the job that this runs in; undefined elsewhere. */
  readonly workflow: WorkflowIdentity | undefined
  /** PEM file of a certificate authority to trust besides the usual ones. */
  caFileFor(url: string): string | undefined
  /** The proxy on the way to an address, see proxy.ts. */
  proxyFor(target: URL): URL | undefined
  /** The person's own folder. */
  readonly home: string
  /** Where credentials, the service and unfinished uploads are kept. */
  readonly configDir: string
  /** What opens an address: a program of the user's choice. */
  readonly browser: string | undefined
  /** Whether a browser on this machine can be seen by the person at the terminal. */
  readonly hasBrowser: boolean
}

type Env = Readonly<Record<string, string | undefined>>

interface RememberedService {
  readonly url?: string
  readonly ca_file?: string
}

export function readSettings(env: Env): Settings {
  const home = env['HOME'] || os.homedir()
  const configDir = path.join(env['XDG_CONFIG_HOME'] || path.join(home, '.config'), 'dropway')
  const remembered = readRemembered(configDir)
  const named = env['DROPWAY_URL']
  return {
    url: named ? parseAddress(named, 'DROPWAY_URL') : remembered.url,
    token: env['DROPWAY_TOKEN']?.trim() || undefined,
    workflow: readWorkflowIdentity(env),
    caFileFor: (url) => env['DROPWAY_CA_FILE'] || (url === remembered.url ? remembered.ca_file : undefined),
    proxyFor: (target) => proxyFor(target, env),
    home,
    configDir,
    browser: env['BROWSER'] || undefined,
    hasBrowser: hasBrowser(env, process.platform),
  }
}

/** Over SSH, in a container and in CI a browser would open where no one sits. */
function hasBrowser(env: Env, platform: NodeJS.Platform): boolean {
  if (env['BROWSER']) return true
  if (env['CI'] || env['SSH_CONNECTION'] || env['SSH_TTY']) return false
  return platform === 'darwin' || platform === 'win32' || Boolean(env['DISPLAY'] || env['WAYLAND_DISPLAY'])
}

/** Origin of a service, without a trailing slash. A bare name is meant to be https. */
export function parseAddress(text: string, what: string): string {
  const url = URL.canParse(text) && /^https?:\/\//i.test(text) ? new URL(text) : parseBare(text)
  if (url === undefined) throw usageError(`${what} must be an address such as https://dropway.example, not "${text}".`)
  return url.origin
}

function parseBare(text: string): URL | undefined {
  const isName = /^[a-z0-9.-]+(?::\d+)?\/?$/i.test(text) && URL.canParse(`https://${text}`)
  return isName ? new URL(`https://${text}`) : undefined
}

const fileIn = (configDir: string): string => path.join(configDir, 'config.json')

function readRemembered(configDir: string): RememberedService {
  try {
    const value = JSON.parse(readFileSync(fileIn(configDir), 'utf8')) as RememberedService
    return typeof value.url === 'string' ? value : {}
  } catch {
    // There was no sign-in yet, or the file is damaged: `login` writes it anew.
    return {}
  }
}

/** From now on commands talk to this service unless DROPWAY_URL says otherwise. */
export function rememberService(configDir: string, url: string, caFile: string | undefined): void {
  mkdirSync(configDir, { recursive: true, mode: 0o700 })
  const remembered: RememberedService = { url, ...(caFile === undefined ? {} : { ca_file: path.resolve(caFile) }) }
  const temporary = `${fileIn(configDir)}.${process.pid}`
  writeFileSync(temporary, `${JSON.stringify(remembered, null, 2)}\n`, { mode: 0o600 })
  renameSync(temporary, fileIn(configDir))
}
