/** `netlify.toml`: `[[redirects]]` and `[[headers]]` are those of `_redirects` and `_headers` in another spelling. Pure. */
import { parse } from 'smol-toml'
import { fieldsOf, ignoreOthers, listOf, newDraft, scalarText, type Fields, type Translation } from './host-file.ts'

/** Nothing that people write is deeper. */
const MAX_DEPTH = 20
const CONDITIONS = ['query', 'params', 'conditions', 'signed', 'headers', 'edge_handler', 'proxy'] as const

export function translateNetlify(text: string): Translation {
  const draft = newDraft()
  const config = fieldsOf(parse(text, { maxDepth: MAX_DEPTH }))
  for (const [index, entry] of listOf(config['redirects']).entries()) {
    const at = `redirects[${index}]`
    const rule = fieldsOf(entry)
    const condition = CONDITIONS.find((name) => isSet(rule[name]))
    if (condition !== undefined) draft.ignored.push(`${at}: ${condition} is not supported, so the rule was left out.`)
    else draft.redirects.push({ at, ...redirectOf(rule) })
  }
  for (const [index, entry] of listOf(config['headers']).entries()) {
    const { for: from, values } = fieldsOf(entry)
    const set = Object.entries(fieldsOf(values)).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map((one): [string, string] => [name, scalarText(one)]),
    )
    draft.headers.push({ at: `headers[${index}]`, from: scalarText(from), set })
  }
  ignoreOthers(draft, config, ['redirects', 'headers'])
  return draft
}

function redirectOf(rule: Fields): { from: string; to: string; status: number; force: boolean } {
  const { from, origin, to, destination, status, force } = rule
  return {
    from: scalarText(from ?? origin),
    to: scalarText(to ?? destination),
    status: Number(status ?? 301),
    force: force === true,
  }
}

/** An empty table, list or `false` asks for nothing. */
function isSet(value: unknown): boolean {
  if (value === undefined || value === false || value === '') return false
  return typeof value !== 'object' || value === null || Object.keys(value).length > 0
}
