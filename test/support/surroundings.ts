/**
 * What the tests have of the place where someone runs them: as little as possible. Processes that they start take it over.
 * A test that is about one of these sets it itself.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

const LEFT_OUT = [
  /^(?:https?|all|no)_proxy$/i,
  /^(?:NO|FORCE)_COLOR$/,
  /^(?:LANGUAGE|LC_\w+)$/,
  /^(?:DROPWAY|GIT|XDG)_/,
  /^(?:BROWSER|EDITOR|PAGER|VISUAL)$/,
  /^SSL_CERT_(?:DIR|FILE)$/,
  /^NODE_(?:DEBUG|EXTRA_CA_CERTS|NO_WARNINGS|OPTIONS|TLS_REJECT_UNAUTHORIZED|USE_ENV_PROXY)$/,
]

/** What most systems give to files. */
const USUAL_UMASK = 0o022

/** For the process from which all others of the run begin, before it starts one. */
export function leaveSurroundings(): void {
  for (const name of Object.keys(process.env)) if (LEFT_OUT.some((kind) => kind.test(name))) delete process.env[name]
  process.env['LANG'] = 'C.UTF-8'
  process.env['TZ'] = 'UTC'
  process.umask(USUAL_UMASK)
  process.env['TMPDIR'] = [os.tmpdir(), '/var/tmp', '/dev/shm'].find(runsPrograms) ?? os.tmpdir()
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
