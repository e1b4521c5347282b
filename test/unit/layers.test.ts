/** Who may import whom: two planes that meet in shared/ only, and floors in control that stand on those below. */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync, Visitor } from 'vite'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const EDGE_STEPS = ['accept', 'gate', 'locate', 'rewrite', 'send']

/** `dropway dev` serves a folder as the edge would: with the same functions, since a second copy would drift. */
const DECISIONS_FOR_ARCHIVES = [
  'control/drops/publishing/archive/extract.ts',
  'control/drops/publishing/archive/gate.ts',
  'control/drops/publishing/intake/bundle.ts',
  'control/drops/publishing/intake/withhold.ts',
]
const DECISIONS_FOR_DEV = [
  'control/drops/publishing/analysis/links.ts',
  'control/drops/publishing/html/scan.ts',
  'control/drops/publishing/intake/bundle.ts',
  'control/drops/publishing/markdown/markdown.ts',
  'control/drops/publishing/manifest/manifest-builder.ts',
  'control/drops/publishing/manifest/site-rules.ts',
  'control/drops/publishing/files/text-encoding.ts',
  'edge/context.ts',
  'edge/locate/locate.ts',
  'edge/locate/site-index.ts',
  'edge/processes/icon.ts',
  'edge/rewrite/headers.ts',
  'edge/send/file.ts',
  'edge/send/representation.ts',
]

interface Import {
  readonly from: string
  /** Path from the root for our own files, the package or `node:` name otherwise. */
  readonly to: string
  readonly isOwn: boolean
  readonly isType: boolean
}

const imports: readonly Import[] = globSync('{shared,certs,edge,control,cli,test,bench}/**/*.ts', {
  cwd: ROOT,
  exclude: (name) => name.includes('node_modules') || name.includes('dist'),
}).flatMap(importsOf)

const sources = globSync('{shared,certs,edge,control,cli}/**/*.ts', {
  cwd: ROOT,
  exclude: (name) => name.includes('node_modules') || name.includes('dist'),
}).map((file) => ({ file, text: readFileSync(path.join(ROOT, file), 'utf8') }))

function importsOf(from: string): Import[] {
  const source = readFileSync(path.join(ROOT, from), 'utf8')
  const statements = source.matchAll(/^(?:import|export)\s+(type\s)?(?:[\w*{}\s,$]+\sfrom\s)?\s*['"]([^'"]+)['"]/gm)
  const calls = source.matchAll(/\bimport\((\s*)['"]([^'"]+)['"]/g)
  return [...statements, ...calls].map(([, type = '', specifier]) => {
    const isOwn = specifier!.startsWith('.')
    const to = isOwn ? path.normalize(path.join(path.dirname(from), specifier!)) : specifier!
    return { from, to, isOwn, isType: type.trim() === 'type' }
  })
}

const folderOf = (file: string) => file.split('/')[0]!
const stepOf = (file: string) =>
  folderOf(file) === 'edge' ? EDGE_STEPS.find((step) => file.startsWith(`edge/${step}/`)) : undefined
const capabilityOf = (file: string) => /^control\/([^/]+\/[^/]+)\//.exec(file)?.[1]
/** From the ground up; plane.ts, main.ts and the operator's commands stand on all of it. */
const FLOORS = ['ground', 'people', 'drops', 'plans', 'doors', 'composition', 'plane.ts', 'main.ts', 'operations']
const floorOf = (file: string) => FLOORS.indexOf(file.split('/')[1]!)
const isData = (file: string) => !file.endsWith('.ts')

/** Each rule names what it forbids; `except` holds the exceptions with their reason. */
const rules: readonly {
  readonly rule: string
  forbids(imported: Import): boolean
  readonly except?: readonly string[]
}[] = [
  {
    rule: 'shared stands on Node, zod and itself; log.ts on pino, redis.ts on ioredis, the S3 store on aws4fetch',
    forbids: ({ from, to, isOwn }) =>
      folderOf(from) === 'shared' &&
      (isOwn
        ? folderOf(to) !== 'shared'
        : !to.startsWith('node:') &&
          to !== 'zod' &&
          !(to === 'pino' && from === 'shared/running/log.ts') &&
          !(to === 'ioredis' && from === 'shared/redis/redis.ts') &&
          !(to === 'aws4fetch' && from.startsWith('shared/blobs/'))),
  },
  {
    rule: 'certs imports shared',
    forbids: ({ from, to, isOwn }) =>
      isOwn && folderOf(from) === 'certs' && !['certs', 'shared'].includes(folderOf(to)),
  },
  {
    rule: 'cli imports shared; dev-server.ts and archive-content.ts also decisions of the edge and the publisher',
    forbids: ({ from, to, isOwn }) =>
      isOwn &&
      folderOf(from) === 'cli' &&
      !['cli', 'shared'].includes(folderOf(to)) &&
      !(from === 'cli/content/dev-server.ts' && DECISIONS_FOR_DEV.includes(to)) &&
      !(from === 'cli/content/archive-content.ts' && DECISIONS_FOR_ARCHIVES.includes(to)),
  },
  {
    rule: 'edge imports shared and certs',
    forbids: ({ from, to, isOwn }) =>
      isOwn && folderOf(from) === 'edge' && !['edge', 'shared', 'certs'].includes(folderOf(to)),
  },
  {
    rule: 'a step of the edge imports itself, context.ts, types of config.ts, store/ and shared; accept also certs',
    forbids({ from, to, isOwn, isType }) {
      const step = stepOf(from)
      if (step === undefined || !isOwn) return false
      const allowed =
        to.startsWith(`edge/${step}/`) ||
        to === 'edge/context.ts' ||
        (isType && to === 'edge/config.ts') ||
        to.startsWith('edge/store/') ||
        folderOf(to) === 'shared'
      return !allowed && !(step === 'accept' && folderOf(to) === 'certs')
    },
  },
  {
    rule: 'control imports shared',
    forbids: ({ from, to, isOwn }) =>
      isOwn && folderOf(from) === 'control' && !['control', 'shared'].includes(folderOf(to)),
    // The supervisor composes both planes on one machine, and doctor examines either.
    except: [
      'control/operations/admin/doctor/doctor.ts → edge/config.ts',
      'control/operations/supervisor/config.ts → edge/config.ts',
      'control/operations/supervisor/orphans.ts → edge/processes/orphans.ts',
    ],
  },
  {
    rule: "a capability calls another's service, never its queries or routes",
    forbids({ from, to, isOwn }) {
      const capability = capabilityOf(from)
      return (
        isOwn &&
        capability !== undefined &&
        capabilityOf(to) !== undefined &&
        capabilityOf(to) !== capability &&
        /\/(queries|routes)\.ts$/.test(to)
      )
    },
  },
  {
    rule: 'a floor of control stands on those below it',
    forbids: ({ from, to, isOwn }) =>
      isOwn && folderOf(from) === 'control' && folderOf(to) === 'control' && floorOf(to) > floorOf(from),
  },
  {
    rule: 'the composition knows services and routes, no queries',
    forbids: ({ from, to }) => from.startsWith('control/composition/') && to.endsWith('/queries.ts'),
  },
  {
    rule: 'only control/ground/http knows the web server',
    forbids: ({ from, to }) =>
      to === 'hyper-express' && folderOf(from) === 'control' && !from.startsWith('control/ground/http/'),
  },
  {
    rule: 'rules and locate do no I/O',
    forbids: ({ from, to }) =>
      (/^control\/.+\/rules\.ts$/.test(from) || from.startsWith('edge/locate/')) &&
      /^node:(fs|http|https|http2|tls|dns|child_process|timers|worker_threads)/.test(to),
  },
  {
    rule: 'benches and tests share test/support; no test but those of the benches knows a bench, no bench another test',
    forbids: ({ from, to, isOwn }) =>
      isOwn &&
      ((folderOf(from) === 'test' && folderOf(to) === 'bench' && !from.startsWith('test/unit/bench/')) ||
        (folderOf(from) === 'bench' && folderOf(to) === 'test' && !to.startsWith('test/support/'))),
  },
  {
    rule: 'tests of acceptance and operations know no source file, but for those that run one part of a machine',
    forbids: ({ from, to, isOwn }) =>
      isOwn && /^test\/(?:acceptance|operations)\/(?!parts\/)/.test(from) && folderOf(to) !== 'test',
  },
]

test.each(rules)('$rule', ({ forbids, except = [] }) => {
  const broken = imports
    .filter((imported) => !isData(imported.from) && forbids(imported))
    .map(({ from, to }) => `${from} → ${to}`)
  expect(broken.filter((each) => !except.includes(each))).toEqual([])
})

test('the imports are really read', () => {
  expect(imports.length).toBeGreaterThan(500)
  expect(imports).toContainEqual({
    from: 'control/operations/supervisor/config.ts',
    to: 'edge/config.ts',
    isOwn: true,
    isType: false,
  })
})

test('only config readers and entry points read the environment', () => {
  const allowed = /(^|\/)(config|main|settings|patience)\.ts$|^cli\//
  const readers = globSync('{shared,certs,edge,control}/**/*.ts', { cwd: ROOT }).filter(
    (file) =>
      !allowed.test(file) &&
      !file.includes('node_modules') &&
      /\bprocess\.env\b/.test(readFileSync(path.join(ROOT, file), 'utf8')),
  )
  expect(readers).toEqual([])
})

test('no line of the dashboard is longer than 160 characters', () => {
  const long = globSync('control/doors/dashboard/**/*.ts', { cwd: ROOT }).flatMap((file) =>
    readFileSync(path.join(ROOT, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => (line.length > 160 ? [`${file}:${index + 1}`] : [])),
  )
  expect(long).toEqual([])
})

test('no files import each other in a circle', () => {
  const targets = Map.groupBy(
    imports.filter(({ isOwn }) => isOwn),
    ({ from }) => from,
  )
  const settled = new Set<string>()
  const circles: string[] = []
  const walk = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' → '))
    if (settled.has(file) || way.includes(file)) return
    for (const { to } of targets.get(file) ?? []) walk(to, [...way, file])
    settled.add(file)
  }
  for (const file of targets.keys()) walk(file, [])
  expect(circles).toEqual([])
})

test('no two rooms of control lean on each other', () => {
  const arrows = new Set(
    imports.flatMap(({ from, to, isOwn }) => {
      const [room, other] = [capabilityOf(from), capabilityOf(to)]
      return isOwn && room !== undefined && other !== undefined && room !== other ? [`${room} → ${other}`] : []
    }),
  )
  expect([...arrows].filter((arrow) => arrows.has(arrow.split(' → ').toReversed().join(' → ')))).toEqual([])
})

test('no room holds more than twelve things', () => {
  const rooms = new Map<string, Set<string>>()
  const files = globSync('{shared,certs,edge,control,cli}/**/*.*', {
    cwd: ROOT,
    exclude: (name) => name.includes('node_modules') || name.includes('dist'),
  })
  for (const file of files) {
    const steps = file.split('/')
    for (let depth = 1; depth < steps.length; depth++) {
      const room = steps.slice(0, depth).join('/')
      rooms.set(room, (rooms.get(room) ?? new Set()).add(steps[depth]!))
    }
  }
  const full = [...rooms].flatMap(([room, things]) => (things.size > 12 ? [`${room}: ${things.size}`] : []))
  // One file per migration, for ever.
  expect(full.filter((each) => !each.startsWith('control/ground/database/migrations:'))).toEqual([])
})

test('no test replaces a module, which would stay replaced for the files that come after it in its process', () => {
  const replacing = globSync('test/**/*.ts', { cwd: ROOT }).filter((file) =>
    /\bvi\.(?:mock|doMock)\(/.test(readFileSync(path.join(ROOT, file), 'utf8')),
  )
  expect(replacing).toEqual([])
})

test('every service declares what it promises', () => {
  const inferred = sources.flatMap(({ file, text }) =>
    [...text.matchAll(/^export type (\w+) = (?:Awaited<)?ReturnType<typeof create\w+>/gm)].map(
      ([, name]) => `${file}: ${name}`,
    ),
  )
  expect(inferred).toEqual([])
})

/** A node of the syntax tree, with the nodes around it, the nearest first. */
function* nodesOf(node: Node, around: readonly Node[] = []): Generator<{ node: Node; around: readonly Node[] }> {
  yield { node, around }
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? value : [value])
      if (typeof (child as Node | null)?.type === 'string') yield* nodesOf(child as Node, [node, ...around])
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [property: string]: unknown
}

/** Whether the changes that a call resolves to are given a name, or returned to the caller with its value. */
function keepsChanges(text: string, around: readonly Node[]): boolean {
  const [parent, ...further] = around
  if (parent?.type === 'AwaitExpression') return keepsChanges(text, further)
  if (parent && text.slice(0, parent.end).endsWith('.catch')) return keepsChanges(text, further.slice(1))
  if (parent?.type === 'ReturnStatement' || parent?.type === 'ArrowFunctionExpression') return true
  if (parent?.type !== 'VariableDeclarator') return false
  const { start, end, type } = parent['id'] as Node
  const name = text.slice(start, end)
  return type === 'ObjectPattern' ? /\bchanges\b/.test(name) : new RegExp(`\\b${name}(?:\\.changes\\b|\\))`).test(text)
}

test('who writes routes holds the changes that propagate asks for', () => {
  const calls = sources
    .filter(({ file, text }) => file.startsWith('control/') && /changeRoutes|exclusive\.change/.test(text))
    .flatMap(({ file, text }) =>
      [...nodesOf(parseSync(file, text).program as object as Node)]
        .filter(({ node }) => node.type === 'CallExpression')
        .map(({ node, around }) => ({ file, text, around, callee: node['callee'] as Node, start: node.start }))
        .filter(({ callee }) => /^(?:changeRoutes|exclusive\.change)$/.test(text.slice(callee.start, callee.end))),
    )
  expect(calls.length).toBeGreaterThan(20)
  const forgotten = calls.filter(({ text, around }) => !keepsChanges(text, around))
  expect(forgotten.map(({ file, text, start }) => `${file}:${text.slice(0, start).split('\n').length}`)).toEqual([])
})

test('only the publication itself writes routes that nobody is answered about', () => {
  const writers = sources.filter(({ text }) => /\bwrite(?:New)?Routes\b/.test(text)).map(({ file }) => file)
  expect(writers.toSorted()).toEqual(['control/ground/routing/outbox.ts', 'control/ground/routing/queries.ts'])
  const others = sources.filter(({ text }) => /\brouteParts\b/.test(text) && !/\bnoteRoutes\(/.test(text))
  expect(others.map(({ file }) => file)).toEqual([])
})

/** These speak to parts of Node that have no types, or others. */
const SPEAK_TO_NODE = [
  'edge/accept/http2/http2.ts',
  'edge/accept/outgoing/kernel-counts.ts',
  'edge/accept/raw-socket.ts',
  'edge/accept/outgoing/unsent.ts',
  // And this to http-proxy, which reads less of a request than its types ask for.
  'edge/send/proxy.ts',
]

test('casts do not go round the types', () => {
  const casts = sources.flatMap(({ file, text }) =>
    [...text.matchAll(/\bas never\b|\bas unknown as\b/g)].map(([cast]) => `${file}: ${cast}`),
  )
  expect(casts.filter((cast) => !SPEAK_TO_NODE.some((file) => cast.startsWith(`${file}:`)))).toEqual([])
})

/** Left to look-ups that a check would slow down, and to facts that no type of ours can say. */
const MAX_ASSERTIONS = 30

test('types say what is there: few places assert it', () => {
  const assertions = sources.flatMap(({ file, text }) => {
    const found: string[] = []
    const visitor = new Visitor({
      TSNonNullExpression: ({ start, end }) => void found.push(`${file}: ${text.slice(start, end)}`),
    })
    visitor.visit(parseSync(file, text).program)
    return found
  })
  expect(assertions.length, assertions.join('\n')).toBeLessThanOrEqual(MAX_ASSERTIONS)
})
