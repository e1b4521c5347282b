/** One exported name has one meaning (docs/glossary.md): a reader who has met it once knows it everywhere. */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Names that several files export, by the reason. A name leaves this list when one of its meanings gets another name. */
const SHARED_NAMES_BY_REASON: Readonly<Record<string, readonly string[]>> = {
  'the client describes the answers of the API for itself, and names its parts as people do': [
    'AnonymousDrop',
    'Body',
    'Changes',
    'Command',
    'DeviceAuthorization',
    'Failure',
    'HttpRequest',
    'OAuth',
    'Progress',
    'RememberedDrop',
    'VersionEntry',
    'Warning',
    'commands',
    'createOAuth',
    'deleteDrop',
  ],
  'one thing as the edge and as control know it; neither imports the other': [
    'Markup',
    'Sent',
    'Sites',
    'Usage',
    'Verdict',
    'WorkersOptions',
    'asPartOf',
    'connectRedis',
    'createSites',
    'surviveStrayErrors',
  ],
  'two rooms of control have the same kind of thing; each has to get a name of its own': [
    'Access',
    'Answer',
    'App',
    'Call',
    'ClockedDrop',
    'Decision',
    'Facts',
    'Lifetimes',
    'Part',
    'PublishReport',
    'Reading',
    'RenderedPage',
    'Tag',
    'TokenIdentity',
    'TokenRow',
    'Tokens',
    'accountRoutes',
    'createTokens',
    'findTokenIdentity',
    'html',
    'insertToken',
    'organisationRoutes',
    'requireActor',
    'send',
  ],
}
const SHARED_NAMES = new Set(Object.values(SHARED_NAMES_BY_REASON).flat())

interface Declaration {
  readonly type: string
  readonly id?: { readonly name?: string } | null
  readonly declarations?: readonly { readonly id: { readonly name?: string } }[]
}

/** What a file declares and exports. What it only hands on is the same thing under the same name. */
function exportedBy(file: string): string[] {
  const { program } = parseSync(file, readFileSync(path.join(ROOT, file), 'utf8'))
  return program.body.flatMap((statement) => {
    if (statement.type !== 'ExportNamedDeclaration' || !statement.declaration) return []
    const { id, declarations = [] } = statement.declaration as Declaration
    return [id, ...declarations.map((each) => each.id)].flatMap((named) => named?.name ?? [])
  })
}

const files = globSync('{shared,certs,edge,control,cli}/**/*.ts', {
  cwd: ROOT,
  exclude: (name) => name.includes('node_modules') || name.includes('dist'),
})
const places = Map.groupBy(
  files.flatMap((file) => [...new Set(exportedBy(file))].map((name) => ({ name, file }))),
  ({ name }) => name,
)
const severalTimes = [...places].filter(([, each]) => each.length > 1)

test('exports are really read', () => {
  expect(places.size).toBeGreaterThan(500)
  expect(places.get('createRouting')?.map(({ file }) => file)).toEqual(['control/ground/routing/routing.ts'])
})

test('no two files export the same name for two things', () => {
  const repeated = severalTimes
    .filter(([name]) => !SHARED_NAMES.has(name))
    .map(([name, each]) => `${name}: ${each.map(({ file }) => file).join(', ')}`)
  expect(repeated.toSorted()).toEqual([])
})

test('names that are shared with a reason are still shared', () => {
  const names = new Set(severalTimes.map(([name]) => name))
  expect([...SHARED_NAMES].filter((name) => !names.has(name))).toEqual([])
})
