/** One-token faults of a regular expression: a lost anchor, a flipped class, a repetition or a length off by one. */
import { parseRegExpLiteral, visitRegExpAST, type AST } from '@eslint-community/regexpp'

/** Literals that differ from `/pattern/flags` by one token each. */
export function regexFaults(pattern: string, flags: string): string[] {
  const literal = `/${pattern}/${flags}`
  const faults: string[] = []
  const replace = (node: AST.Node, replacement: string): void =>
    void faults.push(literal.slice(0, node.start) + replacement + literal.slice(node.end))
  visitRegExpAST(parseRegExpLiteral(literal), {
    onAssertionEnter(node) {
      if (node.kind === 'lookahead' || node.kind === 'lookbehind')
        replace(node, node.negate ? node.raw.replace('!', '=') : node.raw.replace('=', '!'))
      else replace(node, '')
    },
    onCharacterClassEnter(node) {
      replace(node, node.negate ? `[${node.raw.slice(2)}` : `[^${node.raw.slice(1)}`)
    },
    onCharacterSetEnter(node) {
      if (node.kind !== 'any') replace(node, flipCase(node.raw))
    },
    onQuantifierEnter(node) {
      const quantifier = node.raw.slice(node.element.raw.length)
      for (const other of otherQuantifiers(node, quantifier)) replace(node, node.element.raw + other)
    },
    onGroupEnter: (node) => withoutOne(node, replace),
    onCapturingGroupEnter: (node) => withoutOne(node, replace),
    onPatternEnter: (node) => withoutOne(node, replace),
  })
  const end = literal.lastIndexOf('/')
  for (const flag of 'gimsy') if (flags.includes(flag)) faults.push(literal.slice(0, end + 1) + flags.replace(flag, ''))
  return [...new Set(faults)].filter(isValid)
}

function flipCase(raw: string): string {
  const letter = raw[1]!
  return `\\${letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()}${raw.slice(2)}`
}

function otherQuantifiers({ min, max }: AST.Quantifier, written: string): string[] {
  const lazy = written.length > 1 && written.endsWith('?') ? '?' : ''
  if (written.startsWith('*')) return [`+${lazy}`]
  if (written.startsWith('+')) return [`*${lazy}`, '']
  if (written.startsWith('?')) return ['']
  if (max === Number.POSITIVE_INFINITY) return [`{${min + 1},}${lazy}`]
  return min === max
    ? [`{${min + 1}}`]
    : [`{${min},${max + 1}}${lazy}`, `{${min},${max - 1}}${lazy}`, `{${min + 1},${max}}${lazy}`]
}

function withoutOne(
  node: AST.Pattern | AST.Group | AST.CapturingGroup,
  replace: (node: AST.Node, replacement: string) => void,
): void {
  const { alternatives } = node
  if (alternatives.length < 2) return
  const open = node.raw.slice(0, alternatives[0]!.start - node.start)
  const close = node.raw.slice(alternatives.at(-1)!.end - node.start)
  for (const left of alternatives) {
    const others = alternatives.filter((alternative) => alternative !== left).map(({ raw }) => raw)
    replace(node, open + others.join('|') + close)
  }
}

function isValid(literal: string): boolean {
  const end = literal.lastIndexOf('/')
  if (end < 2) return false
  try {
    return new RegExp(literal.slice(1, end), literal.slice(end + 1)) instanceof RegExp
  } catch {
    return false
  }
}
