/** A script of `browser/` and what it imports, as one module text for a page that loads nothing. */
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import path from 'node:path'

const SOURCES = path.join(import.meta.dirname, 'browser')
/** The files share one scope: names at the top of the files of `browser/` differ. */
export function inlineScript(name: string): string {
  const texts = new Map<string, string>()
  const add = (file: string): void => {
    if (texts.has(file)) return
    const lines = readFileSync(path.join(SOURCES, `${file}.ts`), 'utf8').split('\n')
    const [imports, own] = [lines.filter(isImport), lines.filter((line) => !isImport(line))]
    for (const line of imports) add(/'\.\/([\w-]+)\.ts'/.exec(line)?.[1] ?? line)
    texts.set(file, stripTypeScriptTypes(own.map((line) => line.replace(/^export /, '')).join('\n')))
  }
  add(name)
  return [...texts.values()].join('\n')
}

function isImport(line: string): boolean {
  return line.startsWith('import ')
}
