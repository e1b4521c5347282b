/**
 * What ends files of former versions, on three edges: when the change is answered, none of them has a byte of them, not
 * at the drop's address and, where their versions ended too, not at those of previews. Each edge is asked by itself, at
 * once; visitors have had every file in its memory before.
 */
import https from 'node:https'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, bundleForm } from '../support/api.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import type { Account } from '../support/stack.ts'

const EDGES = 3
/** Anyone may see it as long as it is kept. */
const SECRET = 'what the owner wants gone'

let fleet: Fleet
let account: Account

beforeAll(async () => {
  fleet = await startFleet({ edges: EDGES, controls: 1 })
  account = await fleet.createAccount('business')
})
afterAll(() => fleet?.stop())

/** What one edge answers at a host; never through the balancer. */
function ask(port: number, host: string, path: string): Promise<{ status: number; body: string }> {
  const options = { host: '127.0.0.1', port, servername: host, path, rejectUnauthorized: false, agent: false } as const
  return new Promise((resolve, reject) => {
    https
      .get({ ...options, headers: { host: `${host}:${new URL(fleet.baseUrl).port}` } }, (answer) => {
        buffer(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body: String(body) }), reject)
      })
      .on('error', reject)
  })
}

const everywhere = (host: string, path: string) => Promise.all(fleet.edges.map(({ port }) => ask(port, host, path)))

interface Drop {
  readonly id: string
  readonly slug: string
  readonly host: string
  /** Hosts of the previews of both versions. */
  readonly previews: readonly string[]
  publish(text: string, fields?: Readonly<Record<string, string>>): Promise<void>
  patch(body: object): Promise<void>
}

/** A drop whose first version's chunk is kept beside the second, and is in the memory of every edge. */
async function republished(slug: string): Promise<Drop> {
  const api = apiFor(fleet, account)
  const { id } = (await api.create({ slug })).json<{ id: string }>()
  const host = `${slug}.${fleet.sitesDomain}`
  const previews: string[] = []
  const publish = async (text: string, fields: Readonly<Record<string, string>> = {}): Promise<void> => {
    const form = bundleForm({ 'index.html': text, [`chunk-${text}.js`]: `${SECRET}: ${text}` })
    for (const [name, value] of Object.entries(fields)) form.append(name, value)
    const answer = await fleet.fetch(`/api/v1/sites/${id}/upload-bundle`, { token: account.token, body: form })
    expect([answer.status, answer.header('dropway-propagation')], answer.text()).toEqual([201, undefined])
    previews.push(new URL(answer.json<{ preview_url: string }>().preview_url).hostname)
  }
  await publish('one')
  await publish('two')
  for (const at of [host, previews[0]!])
    for (const { status, body } of await everywhere(at, '/chunk-one.js'))
      expect([status, body]).toEqual([200, `${SECRET}: one`])
  return {
    id,
    slug,
    host,
    previews,
    publish,
    async patch(body) {
      const answer = await fleet.fetch(`/api/v1/sites/${id}`, { method: 'PATCH', token: account.token, json: body })
      expect([answer.status, answer.header('dropway-propagation')], answer.text()).toEqual([200, undefined])
    },
  }
}

/** Bytes of the kept file that all edges answer with. */
async function bytesLeft(hosts: readonly string[], path = '/chunk-one.js'): Promise<number> {
  const answers = await Promise.all(hosts.map((host) => everywhere(host, path)))
  return answers
    .flat()
    .reduce((sum, { status, body }) => sum + (status === 200 || body.includes(SECRET) ? body.length : 0), 0)
}

interface End {
  readonly name: string
  end(drop: Drop): Promise<void>
  /** What undoes it, where that can be; nothing comes back with it. */
  undo?(drop: Drop): Promise<void>
  /** The versions end with their files. */
  readonly endsPreviews: boolean
}

const ENDS: readonly End[] = [
  { name: 'purge', end: (drop) => drop.publish('three', { purge: 'true' }), endsPreviews: true },
  {
    name: 'takedown',
    end: async ({ slug }) => void (await fleet.admin('takedown', slug, '--reason', 'test')),
    undo: async ({ slug }) => void (await fleet.admin('restore', slug)),
    endsPreviews: true,
  },
  {
    name: 'delete',
    end: async ({ id }) => {
      const answer = await fleet.fetch(`/api/v1/sites/${id}`, { method: 'DELETE', token: account.token })
      expect([answer.status < 300, answer.header('dropway-propagation')]).toEqual([true, undefined])
    },
    endsPreviews: true,
  },
  {
    name: 'password',
    end: (drop) => drop.patch({ password: 'sesame open' }),
    undo: (drop) => drop.patch({ password: null }),
    endsPreviews: true,
  },
  {
    name: 'viewers',
    end: (drop) => drop.patch({ access_mode: 'viewers' }),
    undo: (drop) => drop.patch({ access_mode: 'public' }),
    endsPreviews: true,
  },
  {
    name: 'zero-days',
    end: (drop) => drop.patch({ keep_old_files_days: 0 }),
    undo: (drop) => drop.patch({ keep_old_files_days: null }),
    endsPreviews: false,
  },
]

test.each(ENDS)('$name: no byte of former files on any edge once it is answered', async ({ name, ...kind }) => {
  const drop = await republished(`ended-${name}`)
  await kind.end(drop)
  expect(await bytesLeft([drop.host])).toBe(0)
  if (kind.endsPreviews) expect(await bytesLeft([drop.previews[0]!])).toBe(0)
  await kind.undo?.(drop)
  expect(await bytesLeft([drop.host])).toBe(0)
  if (kind.undo) for (const { status } of await everywhere(drop.host, '/chunk-two.js')) expect(status).toBe(200)
})
