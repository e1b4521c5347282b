/** Comments stand on the thing that they describe, and name it. */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseSync } from 'vite'
import { expect, test } from 'vitest'

const ROOT = path.resolve(import.meta.dirname, '../..')

interface Comment {
  readonly start: number
  readonly end: number
  /** Without its marks, as one line. */
  readonly words: string
  readonly isDoc: boolean
}

interface Source {
  readonly file: string
  readonly text: string
  readonly comments: readonly Comment[]
  /** Where the first statement that is no import begins. */
  readonly codeAt: number
}

const sources: readonly Source[] = globSync('{shared,certs,edge,control,cli}/**/*.ts', {
  cwd: ROOT,
  exclude: (name) => /(?:^|\/)(?:node_modules|dist)(?:\/|$)/.test(name),
}).map((file) => sourceOf(file, readFileSync(path.join(ROOT, file), 'utf8')))

function sourceOf(file: string, text: string): Source {
  const { program, comments } = parseSync(file, text)
  return {
    file,
    text,
    codeAt: program.body.find(({ type }) => type !== 'ImportDeclaration')?.start ?? text.length,
    comments: comments.map(({ start, end, type, value }) => ({
      start,
      end,
      words: value
        .replaceAll(/^\s*\*+ ?/gm, '')
        .replaceAll(/\s+/g, ' ')
        .trim(),
      isDoc: type === 'Block' && value.startsWith('*'),
    })),
  }
}

const placeOf = ({ file, text }: Source, { start }: Comment): string =>
  `${file}:${text.slice(0, start).split('\n').length}`

/** A doc comment with another right behind it describes nothing, unless it is the first of the file and describes that. */
function orphansOf(source: Source): string[] {
  const { text, comments, codeAt } = source
  return comments.flatMap((comment, index) => {
    const next = comments[index + 1]
    const isHeader = comment.end <= codeAt && !comments.slice(0, index).some(({ isDoc }) => isDoc)
    const isOrphan = comment.isDoc && next?.isDoc && text.slice(comment.end, next.start).trim() === '' && !isHeader
    return isOrphan ? [placeOf(source, comment)] : []
  })
}

/** A comment that begins so leaves out what it is about. Lines that go on with a comment begin anywhere. */
function fragmentsOf(source: Source): string[] {
  const { text, comments } = source
  return comments.flatMap((comment, index) => {
    const before = comments[index - 1]
    const goesOn = before !== undefined && !comment.isDoc && /^\n[ \t]*$/.test(text.slice(before.end, comment.start))
    return comment.words.startsWith('Of ') && !goesOn ? [placeOf(source, comment)] : []
  })
}

test('comments are really read', () => {
  expect(sources.flatMap(({ comments }) => comments).length).toBeGreaterThan(3000)
  const source = sourceOf(
    'a.ts',
    `/** The file. */
import a from 'a'
/** One. */
const b = a
/** Lost. */

/** Two, */
const c = b
// Of a thing.
const d = c // A list
// Of things that goes on.
/** Of another. */
const e = d
`,
  )
  expect(orphansOf(source)).toEqual(['a.ts:5'])
  expect(fragmentsOf(source)).toEqual(['a.ts:9', 'a.ts:12'])
  expect(orphansOf(sourceOf('a.ts', '/** The file. */\n\n/** One. */\nconst b = 1\n'))).toEqual([])
})

test('no doc comment stands before another', () => expect(sources.flatMap(orphansOf)).toEqual([]))

test('no comment begins with "Of": it names what it describes', () => expect(sources.flatMap(fragmentsOf)).toEqual([]))
