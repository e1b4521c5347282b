/** The compose file, as compose reads it. */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

/** The file with settings filled in, and without the parts that are only merged into others. */
export function readCompose(settings: Readonly<Record<string, string>> = {}): object {
  const text = readFileSync(new URL('../../docker-compose.yml', import.meta.url), 'utf8')
  const whole = JSON.parse(filled(JSON.stringify(parse(text, { merge: true })), settings)) as object
  return Object.fromEntries(Object.entries(whole).filter(([key]) => !key.startsWith('x-')))
}

/** `${NAME:-fallback}` becomes what is set, else the fallback, the innermost first. */
function filled(text: string, settings: Readonly<Record<string, string>>): string {
  const next = text.replaceAll(
    /\$\{(\w+):-([^${}]*)\}/g,
    (_, name: string, fallback: string) => settings[name] ?? fallback,
  )
  return next === text ? text : filled(next, settings)
}
