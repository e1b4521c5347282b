/**
 * What the tests have of the place where someone runs them: as little as possible. Processes that they start take it over.
 * A test that is about one of these sets it itself.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** How programs of this machine get out of it. What tests start stays inside, but for what comes from a registry. */
const WAY_OUT = [/^(?:https?|all|no)_proxy$/i, /^SSL_CERT_(?:DIR|FILE)$/, /^NODE_(?:EXTRA_CA_CERTS|USE_ENV_PROXY)$/]
/** Where that is kept for them. */
const KEPT_WAY_OUT = 'WAY_OUT'

const LEFT_OUT = [
  ...WAY_OUT,
  /^(?:NO|FORCE)_COLOR$/,
  /^(?:LANGUAGE|LC_\w+)$/,
  /^(?:DROPWAY|GIT|XDG)_/,
  /^(?:BROWSER|EDITOR|PAGER|VISUAL)$/,
  /^NODE_(?:DEBUG|NO_WARNINGS|OPTIONS|TLS_REJECT_UNAUTHORIZED)$/,
]

/** What most systems give to files. */
const USUAL_UMASK = 0o022

/** For the process from which all others of the run begin, before it starts one. */
export function leaveSurroundings(): void {
  const given = Object.entries(process.env).filter(([name]) => WAY_OUT.some((kind) => kind.test(name)))
  process.env[KEPT_WAY_OUT] ??= JSON.stringify(Object.fromEntries(given))
  for (const name of Object.keys(process.env)) if (LEFT_OUT.some((kind) => kind.test(name))) delete process.env[name]
  process.env['LANG'] = 'C.UTF-8'
  process.env['TZ'] = 'UTC'
  process.umask(USUAL_UMASK)
  process.env['TMPDIR'] = [os.tmpdir(), '/var/tmp', '/dev/shm'].find(runsPrograms) ?? os.tmpdir()
}

/** For programs that ask a registry. */
export function wayOut(): Record<string, string> {
  return JSON.parse(process.env[KEPT_WAY_OUT] ?? '{}') as Record<string, string>
}

/** Tests write programs into temporary folders and run them, which a system may forbid where it keeps its own. */
function runsPrograms(folder: string): boolean {
  let own: string | undefined
  try {
    own = mkdtempSync(path.join(folder, 'dropway-test-probe-'))
    const program = path.join(own, 'program')
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
    execFileSync(program)
    return true
  } catch {
    return false
  } finally {
    if (own !== undefined) rmSync(own, { recursive: true, force: true })
  }
}
