/** The calls of the API model: how they are made up, and how each is sent. */
import fc from 'fast-check'
import { plans } from '../../control/ground/terms/plans.ts'
import { bundleFiles, MARKDOWN, singleFile, uploadFiles } from './api-content.ts'
import type { Caller } from './api-model/access.ts'
import type { Call, FileKind } from './api-model/calls.ts'
import { nextFile } from './api-model/prepared-uploads.ts'
import { isTooLarge } from './api-model/publishing.ts'
import { liveNumber, type World } from './api-model/world.ts'

export interface Sent {
  readonly method: string
  readonly path: string
  readonly json?: unknown
  readonly body?: FormData | Uint8Array<ArrayBuffer> | string
}

const some = fc.nat(59)
const text = fc.constantFrom('one', 'two', 'three', 'four')
const named = fc.constantFrom('', 'A name', 'Ünïcode')
const ifVersion = fc.constantFrom(...(['none', 'none', 'none', 'right', 'right', 'wrong', 'malformed'] as const))
const role = fc.constantFrom('admin', 'member', 'member', 'owner')
const fileKind: fc.Arbitrary<FileKind> = fc.oneof(
  { weight: 60, arbitrary: fc.constant('html' as const) },
  { weight: 8, arbitrary: fc.constant('markdown' as const) },
  { weight: 6, arbitrary: fc.constantFrom('program' as const, 'none' as const, 'unnamed' as const) },
  { weight: 3, arbitrary: fc.constantFrom('two' as const, 'not a form' as const) },
  { weight: 1, arbitrary: fc.constant('too large' as const) },
)
const WRONG_PATCHES = [
  { name: 7 },
  { slug: null },
  { password: '' },
  { spa_fallback: 'yes' },
  { analytics: { other: {} } },
  { unknown: true },
  { name: 'x'.repeat(121) },
  { slug: 'x'.repeat(201) },
]

/** Relative frequency of each call: what changes something comes often, so that 50 calls lead somewhere. */
export function calls(slugs: readonly string[]): fc.Arbitrary<Call> {
  const slug = fc.constantFrom(...slugs)
  const entries: [weight: number, fc.Arbitrary<Call>][] = [
    [
      10,
      fc.record({
        do: fc.constant('create site' as const),
        slug: fc.option(slug, { nil: undefined, freq: 5 }),
        name: fc.option(named, { nil: undefined }),
      }),
    ],
    [3, fc.constant({ do: 'list sites' })],
    [3, fc.record({ do: fc.constant('read site' as const), site: some })],
    [
      8,
      fc.record({
        do: fc.constant('change site' as const),
        site: some,
        patch: fc.record(
          {
            name: named,
            slug,
            analytics: fc.constantFrom(null, { plausible: { domain: 'example.com' } }),
            spa_fallback: fc.boolean(),
            gallery: fc.boolean(),
          },
          { requiredKeys: [] },
        ),
      }),
    ],
    // Each costs 45 ms of a core, on purpose.
    [
      1,
      fc.record({
        do: fc.constant('change site' as const),
        site: some,
        patch: fc.record({ password: fc.constantFrom(null, 'open sesame') }),
      }),
    ],
    [
      1,
      fc.record({
        do: fc.constant('change site wrongly' as const),
        site: some,
        patch: fc.constantFrom(...WRONG_PATCHES),
      }),
    ],
    [3, fc.record({ do: fc.constant('delete site' as const), site: some })],
    [
      16,
      fc.record({
        do: fc.constant('upload' as const),
        site: some,
        file: fileKind,
        text,
        ifVersion,
        message: fc.constantFrom('', 'why'),
      }),
    ],
    [
      4,
      fc.record({
        do: fc.constant('bundle' as const),
        site: some,
        kind: fc.constantFrom(
          'good' as const,
          'good' as const,
          'no index' as const,
          'missing path' as const,
          'no files' as const,
          'not a zip' as const,
        ),
        text,
      }),
    ],
    [3, fc.record({ do: fc.constant('list versions' as const), site: some })],
    [5, promotion('promote')],
    [1, promotion('compare')],
    [
      4,
      fc.record({
        do: fc.constant('start upload' as const),
        site: some,
        texts: fc.array(text, { minLength: 1, maxLength: 2 }),
        hasIndex: fc.boolean(),
        ifVersion,
      }),
    ],
    [7, fc.record({ do: fc.constant('send blob' as const), upload: some, good: fc.constantFrom(true, true, false) })],
    [4, fc.record({ do: fc.constant('finish upload' as const), upload: some })],
    [1, fc.record({ do: fc.constant('read upload' as const), upload: some })],
    [2, fc.record({ do: fc.constant('choose' as const), sites: fc.array(some, { maxLength: 4 }) })],
    [1, fc.constant({ do: 'read me' })],
    [2, fc.constant({ do: 'read usage' })],
    [1, fc.constant({ do: 'list organisations' })],
    [
      2,
      fc.record({
        do: fc.constant('create organisation' as const),
        name: fc.constantFrom('Team', 'Team', ' ', 'see https://example.com'),
      }),
    ],
    [
      1,
      fc.record({ do: fc.constant('rename organisation' as const), org: some, name: fc.constantFrom('Renamed', '') }),
    ],
    [1, ofOrganisation('delete organisation')],
    [5, ofOrganisation('switch')],
    [1, ofOrganisation('list members')],
    [1, ofOrganisation('list invitations')],
    [2, fc.record({ do: fc.constant('transfer' as const), org: some, person: some })],
    [2, fc.record({ do: fc.constant('change role' as const), org: some, person: some, role })],
    [2, fc.record({ do: fc.constant('remove member' as const), org: some, person: some })],
    [4, fc.record({ do: fc.constant('invite' as const), org: some, person: some, role })],
    [1, fc.record({ do: fc.constant('withdraw invitation' as const), org: some, invitation: some })],
    [3, fc.record({ do: fc.constant('accept invitation' as const), invitation: some })],
    [1, fc.constant({ do: 'list tokens' })],
    [2, fc.record({ do: fc.constant('create token' as const), name: fc.constantFrom('ci', 'ci', ' ') })],
    [1, fc.record({ do: fc.constant('revoke token' as const), token: some })],
    [1, fc.record({ do: fc.constant('publish anonymously' as const), browser: fc.nat(1), file: fileKind, text })],
    [
      1,
      fc.record({
        do: fc.constant('publish markdown' as const),
        browser: fc.nat(1),
        text: fc.constantFrom('# Hello', ''),
      }),
    ],
    [1, fc.record({ do: fc.constant('list drops of browser' as const), browser: fc.nat(1) })],
  ]
  return fc.oneof(...entries.map(([weight, arbitrary]) => ({ weight, arbitrary })))
}

function promotion<Do extends 'promote' | 'compare'>(what: Do) {
  return fc
    .record({
      do: fc.constant(what),
      site: some,
      version: fc.nat(3),
      of: some,
      isOwn: fc.constantFrom(true, true, true, false),
    })
    .map(({ isOwn, ...call }) => (isOwn ? { ...call, of: call.site } : call))
}

function ofOrganisation<Do extends 'delete organisation' | 'switch' | 'list members' | 'list invitations'>(what: Do) {
  return fc.record({ do: fc.constant(what), org: some })
}

export const callers: fc.Arbitrary<Caller> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant('session' as const), person: fc.constantFrom(0, 0, 0, 1, 1, 2, 3) }),
  },
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('token' as const), token: fc.nat(9) }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      { kind: 'nobody' as const },
      { kind: 'wrong token' as const },
      { kind: 'foreign page' as const, person: 0 },
    ),
  },
)

/** What goes over the line. The world is only asked which ids there are. */
export function requestOf(world: World, call: Call): Sent {
  const site = (index: number): string => `/sites/${world.site(index)?.id ?? 'st_nobody'}`
  const org = (index: number): string => `/organisations/${world.org(index)?.id ?? 'org_nobody'}`
  const upload = (index: number): string => {
    const found = world.upload(index)
    return `/sites/${found?.site ?? 'st_nobody'}/uploads/${found?.id ?? 'upl_nobody'}`
  }
  const personId = (index: number): string => world.person(index)?.id ?? 'usr_nobody'
  const get = (path: string): Sent => ({ method: 'GET', path })
  const post = (path: string, json?: unknown): Sent => ({ method: 'POST', path, json })
  switch (call.do) {
    case 'create site':
      return post('/sites', { slug: call.slug, name: call.name })
    case 'list sites':
      return get('/sites')
    case 'read site':
      return get(site(call.site))
    case 'change site':
    case 'change site wrongly':
      return { method: 'PATCH', path: site(call.site), json: call.patch }
    case 'delete site':
      return { method: 'DELETE', path: site(call.site) }
    case 'upload': {
      const found = world.site(call.site)
      const capBytes = plans[world.orgs.find(({ id }) => id === found?.org)?.plan ?? 'free'].uploadBytes
      const fields = { message: call.message, ...ifVersionField(call.ifVersion, found ? liveNumber(found) : 0) }
      return { method: 'POST', path: `${site(call.site)}/upload`, body: singleForm(call, capBytes, fields) }
    }
    case 'bundle':
      return { method: 'POST', path: `${site(call.site)}/upload-bundle`, body: bundleForm(call) }
    case 'list versions':
      return get(`${site(call.site)}/versions`)
    case 'promote':
      return post(`${site(call.site)}/versions/${world.version(call.of, call.version) ?? 'v_nobody'}/promote`)
    case 'compare':
      return get(`${site(call.site)}/versions/${world.version(call.of, call.version) ?? 'v_nobody'}/changes`)
    case 'start upload': {
      const found = world.site(call.site)
      const live = found ? liveNumber(found) : 0
      const wanted = { none: undefined, right: live, wrong: live + 1, malformed: -1 }[call.ifVersion]
      const files = uploadFiles(call).map(({ path, sha256, size }) => ({ path, sha256, size }))
      return post(`${site(call.site)}/uploads`, { files, if_version: wanted })
    }
    case 'send blob': {
      const found = world.upload(call.upload)
      const next = found && nextFile(found)
      const bytes = next?.bytes ?? Buffer.from('nothing')
      const body = new Uint8Array(call.good ? bytes : Buffer.from(bytes.toString().toUpperCase()))
      return { method: 'PUT', path: `${upload(call.upload)}/blobs/${next?.sha256 ?? '0'.repeat(64)}`, body }
    }
    case 'finish upload':
      return post(`${upload(call.upload)}/finish`)
    case 'read upload':
      return get(upload(call.upload))
    case 'choose': {
      const ids = call.sites.map((index) => world.site(index)?.id ?? 'st_nobody')
      return { method: 'PUT', path: '/sites/staying-live', json: { site_ids: ids } }
    }
    case 'read me':
      return get('/me')
    case 'read usage':
      return get('/usage')
    case 'list organisations':
      return get('/organisations')
    case 'create organisation':
      return post('/organisations', { name: call.name })
    case 'rename organisation':
      return { method: 'PATCH', path: org(call.org), json: { name: call.name } }
    case 'delete organisation':
      return { method: 'DELETE', path: org(call.org) }
    case 'switch':
      return post(`${org(call.org)}/switch`)
    case 'list members':
      return get(`${org(call.org)}/members`)
    case 'list invitations':
      return get(`${org(call.org)}/invitations`)
    case 'transfer':
      return post(`${org(call.org)}/transfer`, { user_id: personId(call.person) })
    case 'change role':
      return { method: 'PATCH', path: `${org(call.org)}/members/${personId(call.person)}`, json: { role: call.role } }
    case 'remove member':
      return { method: 'DELETE', path: `${org(call.org)}/members/${personId(call.person)}` }
    case 'invite':
      return post(`${org(call.org)}/invitations`, {
        email: world.person(call.person)?.email ?? 'nobody',
        role: call.role,
      })
    case 'withdraw invitation': {
      const id = world.invitation(call.invitation)?.id ?? 'inv_nobody'
      return { method: 'DELETE', path: `${org(call.org)}/invitations/${id}` }
    }
    case 'accept invitation':
      return post('/invitations/accept', { token: world.invitation(call.invitation)?.token ?? 'nothing' })
    case 'list tokens':
      return get('/tokens')
    case 'create token':
      return post('/tokens', { name: call.name })
    case 'revoke token':
      return { method: 'DELETE', path: `/tokens/${world.token(call.token)?.id ?? 'tok_nobody'}` }
    case 'publish anonymously':
      return { method: 'POST', path: '/drops', body: singleForm(call, plans.anonymous.uploadBytes, {}) }
    case 'publish markdown':
      return post('/drops-md', { markdown: call.text })
    case 'list drops of browser':
      return get('/drops')
    default:
      return call satisfies never
  }
}

function ifVersionField(wanted: string, live: number): Record<string, string> {
  if (wanted === 'none') return {}
  return { if_version: { right: String(live), wrong: String(live + 1) }[wanted] ?? 'newest' }
}

function singleForm(
  { file, text: word }: { file: FileKind; text: string },
  capBytes: number,
  fields: Readonly<Record<string, string>>,
): FormData | string {
  if (file === 'not a form') return 'not a form'
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  const { path, bytes } = singleFile(file, file === 'markdown' ? MARKDOWN : word)
  const content = isTooLarge(file, capBytes) ? Buffer.alloc(capBytes + 1, 'x') : bytes
  const part = (name: string): File => new File([new Uint8Array(content)], name)
  if (file === 'unnamed') form.append('file', content.toString())
  else if (file !== 'none') form.append('file', part(file === 'program' ? 'notes.exe' : path))
  if (file === 'two') form.append('file', part(path))
  return form
}

function bundleForm({ kind, text: word }: Extract<Call, { do: 'bundle' }>): FormData {
  const form = new FormData()
  const [index, style] = bundleFiles(word)
  const part = ({ bytes, path }: { bytes: Buffer; path: string }): File => new File([new Uint8Array(bytes)], path)
  if (kind === 'not a zip') form.append('file', part({ bytes: index!.bytes, path: 'site.tar' }))
  if (kind === 'no files' || kind === 'not a zip') return form
  for (const sent of kind === 'no index' ? [style!] : [index!, style!]) {
    form.append('files', part(sent))
    if (kind !== 'missing path') form.append('paths', sent.path)
  }
  return form
}
