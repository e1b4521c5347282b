/** Scripts for browsers, which are written with types: as plain JavaScript. */
import { existsSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { builtScript, OWN_BUILD } from '../running/built.ts'

/**
 * Reads a script without its types; lines stay where they are. In the built form that is done already: Node's stripper of
 * types takes twelve megabytes of each process that has used it.
 */
export function readPlainScript(file: string): string {
  const built = OWN_BUILD && builtScript(OWN_BUILD, file)
  if (built !== undefined && existsSync(built)) return readFileSync(built, 'utf8')
  return stripTypeScriptTypes(readFileSync(file, 'utf8'))
}
