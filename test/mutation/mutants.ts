/**
 * The faults that are planted into a source: small ones, of the kind that a tired person writes and a reviewer overlooks.
 * Wording is left alone (texts of two words and more): a decision hangs on tokens, not on sentences. So are constants that
 * only other modules read: a test of them could only say the same number again.
 *
 * A fault is a replaced piece of text. Its host is the smallest expression or statement around it that can be chosen at
 * run time (`instrument.ts`) without changing what the rest means.
 */
import { parseSync } from 'vite'
import { regexFaults } from './regex-faults.ts'

export interface Mutant {
  /** Project-relative path of the source. */
  readonly file: string
  readonly line: number
  /** The line that it is on, trimmed. */
  readonly code: string
  /** What is replaced by what, as the report shows it. */
  readonly change: string
  readonly start: number
  readonly end: number
  readonly replacement: string
  readonly host: Host
}

export interface Host {
  readonly kind: 'expression' | 'statement'
  readonly start: number
  readonly end: number
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

const COMPARISONS: Readonly<Record<string, readonly string[]>> = {
  '===': ['!=='],
  '!==': ['==='],
  '==': ['!='],
  '!=': ['=='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
}
const ARITHMETIC: Readonly<Record<string, string>> = {
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '*',
  '>>': '<<',
  '<<': '>>',
  '&': '|',
  '|': '&',
}
const ASSIGNMENTS: Readonly<Record<string, string>> = { '+=': '-=', '-=': '+=', '*=': '/=', '??=': '=', '||=': '=' }

/** One method called instead of another. */
const SWAPPED: ReadonlyMap<string, string> = new Map(
  Object.entries({
    some: 'every',
    every: 'some',
    find: 'findLast',
    indexOf: 'lastIndexOf',
    lastIndexOf: 'indexOf',
    startsWith: 'endsWith',
    endsWith: 'startsWith',
    min: 'max',
    max: 'min',
    floor: 'ceil',
    ceil: 'floor',
    push: 'unshift',
    pop: 'shift',
    shift: 'pop',
    padStart: 'padEnd',
    replaceAll: 'replace',
  }),
)
/** A call that is forgotten: what it was called on takes its place. */
const FORGOTTEN: ReadonlySet<string> = new Set(
  'trim filter sort reverse slice replace toLowerCase toUpperCase normalize toWellFormed flat'.split(' '),
)

/** Nothing of types is there at run time. */
const TYPE_KEYS: ReadonlySet<string> = new Set(
  'typeAnnotation typeArguments typeParameters returnType superTypeArguments implements'.split(' '),
)
const ERASED_AROUND: ReadonlySet<string> = new Set(
  'TSAsExpression TSSatisfiesExpression TSNonNullExpression TSInstantiationExpression'.split(' '),
)

export function findMutants(file: string, source: string): Mutant[] {
  const { program, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]!.message}`)
  const finder = new Finder(file, source)
  finder.visit(program as unknown as Node, { parent: undefined, key: '', host: undefined, isOnChain: false })
  return finder.found
}

interface Place {
  readonly parent: Node | undefined
  readonly key: string
  readonly host: Host | undefined
  /** Inside `a?.b.c`: choosing between parts of it would end the short circuit early. */
  readonly isOnChain: boolean
}

class Finder {
  readonly found: Mutant[] = []
  readonly #file: string
  readonly #source: string

  constructor(file: string, source: string) {
    this.#file = file
    this.#source = source
  }

  visit(node: Node, place: Place): void {
    if (node.type.startsWith('TS') && !ERASED_AROUND.has(node.type)) return
    if (node.type === 'ImportDeclaration' || node.type === 'ExportAllDeclaration') return
    if (node.type === 'ExportNamedDeclaration' && this.#isForOthers(node)) return
    const host = isChoosable(node, place) ? hostOf(node, 'expression') : place.host
    this.#plant(node, place, host)
    for (const [key, value] of Object.entries(node)) {
      if (TYPE_KEYS.has(key)) continue
      for (const child of Array.isArray(value) ? value : [value]) {
        if (!isNode(child)) continue
        const isSpine = key === 'object' || key === 'callee' || key === 'expression'
        const isOnChain = isSpine && (place.isOnChain || node.type === 'ChainExpression')
        this.visit(child, { parent: node, key, host: isStatement(child) ? undefined : host, isOnChain })
      }
    }
  }

  /** `export const X = …` of plain values, which nothing in this file reads. */
  #isForOthers(node: Node): boolean {
    const text = this.#text(node)
    const name = /^export const (\w+)/.exec(text)?.[1]
    if (name === undefined || /=>|\(/.test(text)) return false
    const read = new RegExp(`(?<!export const |typeof )\\b${name}\\b`)
    return !read.test(this.#source)
  }

  /** Replaces [start, end) of the source. */
  #fault(host: Host | undefined, start: number, end: number, replacement: string, change?: string): void {
    if (host === undefined) return
    const lineStart = this.#source.lastIndexOf('\n', start - 1) + 1
    const lineEnd = this.#source.indexOf('\n', start)
    const code = this.#source.slice(lineStart, lineEnd < 0 ? undefined : lineEnd).trim()
    const named = change ?? `${shorten(this.#source.slice(start, end))} → ${shorten(replacement) || 'nothing'}`
    const twins = this.found.filter((other) => other.code === code && other.change.startsWith(named)).length
    this.found.push({
      file: this.#file,
      line: this.#source.slice(0, start).split('\n').length,
      code,
      change: twins === 0 ? named : `${named} (${twins + 1})`,
      start,
      end,
      replacement,
      host,
    })
  }

  #text(node: Node): string {
    return this.#source.slice(node.start, node.end)
  }

  #plant(node: Node, place: Place, host: Host | undefined): void {
    const whole = (replacement: string, change?: string): void =>
      this.#fault(host, node.start, node.end, replacement, change)
    switch (node.type) {
      case 'Literal':
        return this.#literal(node, place, whole)
      case 'TemplateLiteral':
        if (isToken(this.#templateText(node)) || isSplit(place)) whole("''")
        return
      case 'BinaryExpression':
        return this.#binary(node, host)
      case 'LogicalExpression': {
        const [left, right] = [node['left'] as Node, node['right'] as Node]
        whole(this.#text(left), `${shorten(this.#text(node))} without its right side`)
        return whole(this.#text(right), `${shorten(this.#text(node))} without its left side`)
      }
      case 'UnaryExpression':
        if (node['operator'] === '!' || node['operator'] === '-') whole(this.#text(node['argument'] as Node))
        return
      case 'UpdateExpression':
        return this.#operator(node, host, node['operator'] === '++' ? '--' : '++')
      case 'AssignmentExpression': {
        const other = ASSIGNMENTS[node['operator'] as string]
        return other === undefined ? undefined : this.#operator(node, host, other)
      }
      case 'ConditionalExpression':
        return this.#condition(node['test'] as Node, host, ['true', 'false'])
      case 'IfStatement':
        return this.#condition(node['test'] as Node, hostOf(node['test'] as Node, 'expression'), ['true', 'false'])
      case 'WhileStatement':
      case 'DoWhileStatement':
      case 'ForStatement':
        if (isNode(node['test'])) this.#condition(node['test'], hostOf(node['test'], 'expression'), ['false'])
        return
      case 'CallExpression':
        return this.#call(node, host)
      case 'MemberExpression':
        if (node['optional'] === true) this.#unchain(node, node['object'] as Node, host)
        return
      case 'ArrayExpression':
        if ((node['elements'] as unknown[]).length > 0) whole('[]')
        return
      case 'ReturnStatement': {
        const argument = node['argument']
        if (isNode(argument) && !isConstant(argument))
          this.#fault(hostOf(node, 'statement'), node.start, node.end, 'return')
        return
      }
      case 'ExpressionStatement':
      case 'ThrowStatement':
      case 'BreakStatement':
      case 'ContinueStatement':
        return this.#fault(hostOf(node, 'statement'), node.start, node.end, '')
      default:
    }
  }

  #literal(node: Node, place: Place, whole: (replacement: string, change?: string) => void): void {
    const { value } = node
    if (isKey(place) || place.parent?.type === 'ExpressionStatement') return
    if (isNode(node['regex']) || typeof node['regex'] === 'object') {
      const { pattern, flags } = node['regex'] as { pattern: string; flags: string }
      for (const fault of regexFaults(pattern, flags)) whole(fault)
    } else if (typeof value === 'boolean') whole(String(!value))
    else if (typeof value === 'number') whole(String(value + 1))
    else if (typeof value === 'string' && (isToken(value) || isSplit(place))) whole(value === '' ? "'?'" : "''")
  }

  #templateText(node: Node): string {
    return (node['quasis'] as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('x')
  }

  #binary(node: Node, host: Host | undefined): void {
    const operator = node['operator'] as string
    if (operator === 'in' || operator === 'instanceof')
      return this.#fault(host, node.start, node.end, `!(${this.#text(node)})`)
    const others = COMPARISONS[operator] ?? (ARITHMETIC[operator] === undefined ? [] : [ARITHMETIC[operator]])
    for (const other of others) this.#operator(node, host, other)
  }

  /** The operator stands between the operands, or beside the only one. */
  #operator(node: Node, host: Host | undefined, other: string): void {
    const operator = node['operator'] as string
    const left = (node['left'] ?? (node['prefix'] === true ? undefined : node['argument'])) as Node | undefined
    const start = this.#source.indexOf(operator, left === undefined ? node.start : left.end)
    const change = `${shorten(this.#text(node))}: ${operator} → ${other}`
    this.#fault(host, start, start + operator.length, other, change)
  }

  #condition(test: Node, host: Host | undefined, values: readonly string[]): void {
    if (isConstant(test)) return
    for (const value of values) this.#fault(host, test.start, test.end, value)
  }

  #call(node: Node, host: Host | undefined): void {
    const callee = node['callee'] as Node
    if (node['optional'] === true) this.#unchain(node, callee, host)
    if (callee.type !== 'MemberExpression' || callee['computed'] === true) return
    const property = callee['property'] as Node
    const name = this.#text(property)
    const swapped = SWAPPED.get(name)
    if (swapped !== undefined) this.#fault(host, property.start, property.end, swapped)
    const object = callee['object'] as Node
    if (FORGOTTEN.has(name))
      this.#fault(host, object.end, node.end, '', `${shorten(this.#text(node))} without .${name}()`)
  }

  /** `a?.b` → `a.b`. */
  #unchain(node: Node, object: Node, host: Host | undefined): void {
    const start = this.#source.indexOf('?.', object.end)
    const next = this.#source[start + 2]
    this.#fault(host, start, start + 2, next === '[' || next === '(' ? '' : '.', `${shorten(this.#text(node))}: ?. → .`)
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Node>).type === 'string'
}

function hostOf({ start, end }: Node, kind: Host['kind']): Host {
  return { kind, start, end }
}

function isStatement({ type }: Node): boolean {
  return (type.endsWith('Statement') || type.endsWith('Declaration')) && type !== 'ExpressionStatement'
}

const EXPRESSIONS: ReadonlySet<string> = new Set(
  `Literal TemplateLiteral BinaryExpression LogicalExpression UnaryExpression UpdateExpression AssignmentExpression
   ConditionalExpression CallExpression MemberExpression ChainExpression ArrayExpression ObjectExpression NewExpression
   AwaitExpression ParenthesizedExpression ArrowFunctionExpression SequenceExpression`.split(/\s+/),
)

/** Whether `(active ? other : node)` can stand where the node does. */
function isChoosable(node: Node, place: Place): boolean {
  if (!EXPRESSIONS.has(node.type) || place.isOnChain || isKey(place)) return false
  const { parent, key } = place
  if (parent === undefined || key === 'callee' || key === 'tag' || key === 'quasi') return false
  // What is assigned to, counted up or declared has to stay a name.
  return !(
    (key === 'left' && /^(?:Assignment|For[IO])/.test(parent.type)) ||
    (key === 'argument' && parent.type === 'UpdateExpression') ||
    (key === 'argument' && parent['operator'] === 'delete') ||
    (key === 'expression' && parent.type === 'ExpressionStatement' && node.type === 'Literal')
  )
}

function isKey({ parent, key }: Place): boolean {
  return key === 'key' && parent?.['computed'] !== true
}

function isConstant(node: Node): boolean {
  return (
    (node.type === 'Literal' && typeof node['value'] !== 'string') ||
    (node.type === 'Identifier' && node['name'] === 'undefined')
  )
}

function isToken(text: string): boolean {
  return !/\p{L}\S*\s+\S*\p{L}/u.test(text)
}

/** A list that is written as a text. */
function isSplit({ parent, key }: Place): boolean {
  return key === 'object' && (parent?.['property'] as { name?: string } | undefined)?.name === 'split'
}

const MAX_SHOWN_CHARS = 90

function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ')
  return line.length > MAX_SHOWN_CHARS ? `${line.slice(0, MAX_SHOWN_CHARS)}…` : line
}
