/** A script of `browser/` and what it imports, as one module text for a page that loads nothing. */
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import path from 'node:path'

const SOURCES = path.join(import.meta.dirname, 'browser')
const IMPORT = /^import [^'\n]*'\.\/([\w-]+)\.ts';?$/gm

/** They share one scope: names at the top of the files of `browser/` differ. */
export function inlineScript(name: string): string {
  const texts = new Map<string, string>()
  const add = (file: string): void => {
    if (texts.has(file)) return
    const source = readFileSync(path.join(SOURCES, `${file}.ts`), 'utf8')
    for (const [, imported] of source.matchAll(IMPORT)) add(imported!)
    texts.set(file, stripTypeScriptTypes(source.replace(IMPORT, '')).replace(/^export /gm, ''))
  }
  add(name)
  return [...texts.values()].join('\n')
}
