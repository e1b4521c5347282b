/**
 * Finds regular expressions whose time can grow faster than their input, by their form alone:
 *
 *   nested      (a+)+      a repetition that can end where it begins again
 *   adjacent    a*b?a*c    two repetitions that can share a run of characters, and something after them that can fail
 *   searching   a+b        unanchored: each start reads the run again, and something after it can fail
 *
 * Character sets are compared on samples, ASCII and a few others. It errs on the side of finding too much.
 */
import { parseRegExpLiteral, type AST } from '@eslint-community/regexpp'

const SAMPLES: readonly string[] = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  'é',
  'ß',
  '\u0301',
  '世',
  '\u2028',
  '\ufeff',
  '😀',
]

type Chars = readonly boolean[]

/** One element of a sequence, as far as time is concerned. */
interface Piece {
  readonly chars: Chars
  /** What it may begin with. */
  readonly first: Chars
  readonly isNullable: boolean
  /** Repeats without a bound. */
  readonly isEndless: boolean
  /** Consumes nothing: `$`, `\b`, a look-around. It can fail all the same. */
  readonly isAssertion: boolean
}

/** Undefined when the time is linear. */
export function regexProblem(source: string, flags: string): string | undefined {
  const literal = parseRegExpLiteral(`/${source}/${flags}`)
  const problems = literal.pattern.alternatives.flatMap((alternative) => [
    ...nestedProblems(alternative, flags),
    ...sequenceProblems(alternative, flags),
    ...(flags.includes('y') ? [] : searchProblems(alternative, flags)),
  ])
  return problems[0]
}

type Element = AST.Element | AST.QuantifiableElement

function charsOf(node: Element, flags: string): Chars {
  switch (node.type) {
    case 'Group':
    case 'CapturingGroup':
      return union(node.alternatives.flatMap(({ elements }) => elements.map((element) => charsOf(element, flags))))
    case 'Quantifier':
      return charsOf(node.element, flags)
    case 'Assertion':
      return union([])
    case 'Backreference':
      return SAMPLES.map(() => true)
    default: {
      const expression = new RegExp(`^${node.raw}$`, flags.replace(/[gy]/g, '').concat(/[uv]/.test(flags) ? '' : 'u'))
      return SAMPLES.map((sample) => expression.test(sample))
    }
  }
}

function union(sets: readonly Chars[]): Chars {
  return SAMPLES.map((_, index) => sets.some((set) => set[index]))
}

function overlap(a: Chars, b: Chars): boolean {
  return a.some((has, index) => has && b[index])
}

function isNullable(node: Element): boolean {
  switch (node.type) {
    case 'Group':
    case 'CapturingGroup':
      return node.alternatives.some(({ elements }) => elements.every(isNullable))
    case 'Quantifier':
      return node.min === 0 || isNullable(node.element)
    case 'Assertion':
    case 'Backreference':
      return true
    default:
      return false
  }
}

/** What a match of the elements may begin with. */
function firstChars(elements: readonly Element[], flags: string): Chars {
  const sets: Chars[] = []
  for (const element of elements) {
    if (element.type === 'Group' || element.type === 'CapturingGroup')
      sets.push(...element.alternatives.map((alternative) => firstChars(alternative.elements, flags)))
    else if (element.type === 'Quantifier') sets.push(firstChars([element.element], flags))
    else sets.push(charsOf(element, flags))
    if (!isNullable(element)) break
  }
  return union(sets)
}

/** A sequence without its groups: what repeats inside of one repeats in the sequence. Alternatives become several. */
function piecesOf(elements: readonly Element[], flags: string): Piece[][] {
  let sequences: Piece[][] = [[]]
  for (const element of elements) {
    const ways = waysOf(element, flags)
    sequences = sequences.flatMap((sequence) => ways.map((way) => [...sequence, ...way])).slice(0, 200)
  }
  return sequences
}

function waysOf(element: Element, flags: string): Piece[][] {
  if (element.type === 'Group' || element.type === 'CapturingGroup')
    return element.alternatives.flatMap((alternative) => piecesOf(alternative.elements, flags))
  if (element.type === 'Quantifier' && element.max === 1 && element.min === 0)
    return [[], ...waysOf(element.element, flags)]
  return [
    [
      {
        chars: charsOf(element, flags),
        first: firstChars([element], flags),
        isNullable: isNullable(element),
        isEndless: element.type === 'Quantifier' && element.max === Infinity,
        isAssertion: element.type === 'Assertion',
      },
    ],
  ]
}

function* quantifiersIn(node: AST.Alternative | Element): Generator<AST.Quantifier> {
  if (node.type === 'Alternative') for (const element of node.elements) yield* quantifiersIn(element)
  else if (node.type === 'Group' || node.type === 'CapturingGroup')
    for (const alternative of node.alternatives) yield* quantifiersIn(alternative)
  else if (node.type === 'Quantifier') {
    yield node
    yield* quantifiersIn(node.element)
  } else if (node.type === 'Assertion' && (node.kind === 'lookahead' || node.kind === 'lookbehind'))
    for (const alternative of node.alternatives) yield* quantifiersIn(alternative)
}

function nestedProblems(alternative: AST.Alternative, flags: string): string[] {
  const problems: string[] = []
  for (const outer of quantifiersIn(alternative)) {
    if (outer.max !== Infinity) continue
    const begins = firstChars([outer.element], flags)
    for (const pieces of waysOf(outer.element, flags)) {
      const isAmbiguous = pieces.some(
        (piece, index) =>
          piece.isEndless &&
          overlap(piece.chars, begins) &&
          pieces.slice(index + 1).every((one) => one.isNullable || overlap(one.chars, piece.chars)),
      )
      if (isAmbiguous) problems.push(`nested: ${outer.raw} can end where it begins again`)
      // Each round of the loop can be read in several ways, and the next one begins from each of them.
      if (sharesRun(pieces, () => true)) problems.push(`nested: two repetitions in ${outer.raw} share a run`)
    }
  }
  return problems
}

/** Something after this piece can fail, so that the pieces before it are tried in all ways. */
function canFail(rest: readonly Piece[]): boolean {
  return rest.some((piece) => piece.isAssertion || !piece.isNullable)
}

function sequenceProblems(alternative: AST.Alternative, flags: string): string[] {
  const isFound = piecesOf(alternative.elements, flags).some((pieces) => sharesRun(pieces, canFail))
  return isFound ? ['adjacent: two repetitions share a run of characters'] : []
}

function sharesRun(pieces: readonly Piece[], mayFail: (rest: readonly Piece[]) => boolean): boolean {
  return pieces.some((piece, index) => {
    if (!piece.isEndless) return false
    return pieces.slice(index + 1).some((other, offset) => {
      const between = pieces.slice(index + 1, index + 1 + offset)
      return (
        other.isEndless &&
        overlap(piece.chars, other.first) &&
        between.every((one) => sits(one, piece, other)) &&
        mayFail(pieces.slice(index + offset + 2))
      )
    })
  })
}

/** A piece between two repetitions that can be read as part of either of them. */
function sits(one: Piece, before: Piece, after: Piece): boolean {
  return one.isNullable || (overlap(one.chars, before.chars) && overlap(one.chars, after.chars))
}

function searchProblems(alternative: AST.Alternative, flags: string): string[] {
  return piecesOf(alternative.elements, flags).flatMap((pieces) => {
    if (isAnchored(alternative.elements, flags)) return []
    const run = pieces.findIndex((piece) => piece.isEndless)
    if (run < 0 || !canFail(pieces.slice(run + 1))) return []
    const before = pieces.slice(0, run).filter((piece) => !piece.isNullable)
    const isInside = before.every((piece) => overlap(piece.chars, pieces[run]!.chars))
    return isInside ? ['searching: every start reads the same run again'] : []
  })
}

/** Begins with `^`, in all of its alternatives. */
function isAnchored(elements: readonly Element[], flags: string): boolean {
  const [first] = elements
  if (first?.type === 'Assertion') return first.kind === 'start' && !flags.includes('m')
  if (first?.type === 'Group' || first?.type === 'CapturingGroup')
    return first.alternatives.every((alternative) => isAnchored(alternative.elements, flags))
  return false
}
