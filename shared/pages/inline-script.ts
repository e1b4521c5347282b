/**
 * Scripts of a folder as text for pages that load nothing: typed and linted sources, without types, comments and blanks.
 * The text is what Node makes of the source; names stay as they are, so short ones are worth it where every visitor pays.
 */
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { compactScript } from './compact-script.ts'
import { readPlainScript } from './plain-script.ts'

/** What the pages of both planes run. */
export const SHARED_SCRIPTS = path.join(import.meta.dirname, 'browser')

/**
 * Reads the scripts of a folder once. The function that it returns joins the named ones and what they import, each once.
 * All of them share one scope: names at the top of the files of a folder differ.
 */
export function readInlineScripts(folder: string): (...names: string[]) => string {
  const scripts = new Map(
    readdirSync(folder)
      .filter((file) => file.endsWith('.ts'))
      .map((file) => [path.basename(file, '.ts'), readScript(path.join(folder, file))]),
  )
  return (...names) => {
    const texts = new Map<string, string>()
    const add = (name: string): void => {
      const script = scripts.get(name)
      if (script === undefined) throw new Error(`There is no script ${name}.ts in ${folder}`)
      if (texts.has(name)) return
      for (const imported of script.imports) add(imported)
      texts.set(name, script.text)
    }
    for (const name of names) add(name)
    return [...texts.values()].join('\n')
  }
}

function readScript(file: string): { readonly imports: readonly string[]; readonly text: string } {
  const lines = readPlainScript(file).split('\n')
  const imports = lines.flatMap((line) => /^import .*'\.\/([\w-]+)\.ts'/.exec(line)?.[1] ?? [])
  const own = lines.filter((line) => !line.startsWith('import ')).map((line) => line.replace(/^export /, ''))
  return { imports, text: compactScript(own.join('\n')) }
}
