/** Sets of patterns and the paths they are asked about: by hand what git's own tests try, the rest from one seed. */
import { createRandom, type Random } from '../../../support/random.ts'

/** What a folder to publish may hold; a slash at the end makes a folder. Their parents are folders of it too. */
const TREE: readonly string[] = [
  ...['index.html', 'about.html', 'app.js', 'app.js.map', 'README', 'Upper', 'lower', 'MiXed.TXT', '.hidden'],
  ...['[slug].html', '[slug]/page.html', '(group)/page.html', '{a,b}.txt', '$id.tsx', '+page.svelte', '@at', '~tilde'],
  ...['x y', 'z w/x y.txt', 'trailing ', 'tab\there', '#hash', '!bang', 'back\\slash', 'star*', 'what?', "quo'te"],
  ...[']', ']x', '-', '-dash', '^hat', '[', '[a', 'a]', '[:x', '\\', 'a-b', 'a_b', 'a.b', 'axb', 'ab'],
  ...['1', '12', 'v1.2.3', 'file1.js', 'file9.js', 'filex.js', 'caf\u00e9', '\u00fcber/stra\u00dfe.txt', 'logo.png'],
  ...['a/', 'a/b', 'b/c/d', 'b/c/e.txt', 'b/x.txt', 'b/c/x.txt', 'b/c/d2/x.txt', 'foo/bar', 'foo/baz/bar', 'foobar'],
  ...['foo/baz/x/bar', 'docs/drafts/one.md', 'drafts', 'blog/drafts/two.md', 'keep/drop/in.txt', 'keep/in.txt'],
  ...['node_modules/left/index.js', 'lib/node_modules/pad.js', '.env', 'sub/.env.local', 'sub/.DS_Store', '..dots'],
  ...['build/out.js', 'build/keep.js', 'src/build/out.js', 'deep/1/2/3/4/5.txt', 'deep/1/2/4', 'deepest', 'x/x/x/x'],
]

export interface AskedPath {
  readonly path: string
  readonly isFolder: boolean
}

/** Sorted, folders among them. */
export const PATHS: readonly AskedPath[] = [...new Set(TREE.flatMap(withFolders))]
  .toSorted()
  .map((name) => ({ path: name.replace(/\/$/, ''), isFolder: name.endsWith('/') }))

function withFolders(name: string): string[] {
  const parts = name.split('/')
  const folders = parts.slice(0, -1).map((_, index) => `${parts.slice(0, index + 1).join('/')}/`)
  return name.endsWith('/') ? folders : [...folders, name]
}

const BY_HAND: readonly string[] = [
  ...['\\[slug\\]', '\\[slug\\].html', '[slug].html', 'x\\ y', 'x y', 'x y/', '[]-]*', '[[:upper:]]*', '[[:lower:]]*'],
  ...[
    '[![:upper:]]*',
    '[^[:alpha:]]*',
    '[[:digit:]]',
    '[[:digit:][:punct:]]*',
    '[[:nosuch:]]*',
    '[[:upper:]',
    '[[:x]*',
  ],
  ...['[!]a-]*', '[]]', '[]', '[!]', '[a', 'a]', '[\\]]', '[\\\\]', '[a\\-z]*', '[a-]*', '[-a]*', '[z-a]*', '[^-]*'],
  ...['\\', '\\\\', 'back\\\\slash', 'back\\slash', 'star\\*', 'what\\?', '\\#hash', '\\!bang', '#hash', '!bang'],
  ...['trailing\\ ', 'trailing ', 'trailing', 'x\\ y   ', 'tab\there', 'tab\there\t', 'lower\r', ' lower', '/lower '],
  ...['*', '/*', '**', '/**', '**/', '*/', '/*/', '*/*', '**/*', '*/**', '***', '***/x', '?', '??', '?*', '*?*', '/?'],
  ...['foo/**', 'foo/**/bar', '**/bar', '/**/bar', 'foo/*/bar', 'foo/**/', '**/foo/**', 'foo/**/**/bar', '**/**/x.txt'],
  ...['b/**/x.txt', 'b/*.txt', 'b/**.txt', 'b/*', 'b/c/**', 'b/', '/b', 'b/c', 'b/c/', '/b/c', 'c/d', 'c', 'd', '*/c'],
  ...['drafts', 'drafts/', '/drafts', '/drafts/', 'docs/drafts', '**/drafts/', 'drafts/*', 'caf?', 'caf??', 'caf*'],
  ...[
    'caf\u00e9',
    'caf[\u00e9]',
    '\u00fcber',
    '*stra\u00dfe*',
    '[[:space:]]*',
    '*[[:space:]]*',
    '*[[:blank:]]*',
    '*.txt',
  ],
  ...['*.js\n!file*.js', '*\n!*.html', '*\n!*/\n!*.txt', 'b\n!b/x.txt', 'b/*\n!b/c', '/*\n!/b\n/b/*\n!/b/c', '!b\nb'],
  ...['build\n!src/build', '!node_modules', '!node_modules/', '!.env', '!.env\n.env', 'deep/1/2/\n!deep/1/2/3', '!*'],
  ...['\ufeff*.txt', '*.txt\r\n!x.txt\r\n', '\n\n# no\n   \n*.md', '/', '//', '!/', '!', 'a//b', './a', '../a', 'a/.'],
  ...['{a,b}.txt', '(group)', '$id.tsx', '+*', '@at', '~*', '*+*', 'a.b', 'a?b', 'a[.]b', 'a[!.]b', '[[:alnum:]_]*'],
  ...[
    '*a*b*',
    '*.*.*',
    '**a',
    'a**',
    'x**x',
    'x/**/x',
    'x/*/x',
    'x/x/**',
    '**/x/x',
    'deep/**/4',
    'deep/**/4*',
    '**/4/*',
  ],
]

const PIECES: readonly string[] = [
  ...['a', 'b', 'c', 'x', 'foo', 'bar', 'drafts', 'build', 'deep', '1', '.txt', '.js', '.html', 'x y', '\\ ', ' '],
  ...[
    '*',
    '*',
    '*',
    '**',
    '?',
    '/',
    '/',
    '/',
    '**/',
    '/**',
    '/**/',
    '\\',
    '\\*',
    '\\[',
    '\\]',
    '[',
    ']',
    '-',
    '!',
    '^',
  ],
  ...['[a-c]', '[!a-c]', '[^x]', '[]x]', '[[:alpha:]]', '[[:digit:]]', '[[:upper:]x]', '[.]', '[\\]]', '[a-', '[[:a'],
]

/** Asterisks right behind other characters and before a slash: here releases of git differ from each other. */
const DISPUTED = /[^/*]\*\*+\/|[^/*]\*\*+$/m

function generatedPattern(random: Random): string {
  const sign = random.chance(0.2) ? '!' : ''
  return sign + Array.from({ length: random.between(1, 5) }, () => random.pick(PIECES)).join('')
}

function generatedSets(count: number, seed: number): string[] {
  const random = createRandom(seed)
  const sets: string[] = []
  while (sets.length < count) {
    const set = Array.from({ length: random.between(1, 3) }, () => generatedPattern(random)).join('\n')
    if (!DISPUTED.test(set)) sets.push(set)
  }
  return sets
}

export const SETS: readonly string[] = [...BY_HAND.filter((set) => !DISPUTED.test(set)), ...generatedSets(400, 17)]

/** One bit for each path, four to a digit. */
export function digitsOf(ignored: readonly boolean[]): string {
  const bits = ignored.map((isIgnored) => (isIgnored ? '1' : '0')).join('')
  return bits.replace(/.{1,4}/g, (four) => Number.parseInt(four.padEnd(4, '0'), 2).toString(16))
}
