/**
 * Whatever is published, promoted, taken back, compressed and collected, in whatever order: what a retained version needs is
 * in the store, and the next version takes over what the newest one needs, no more and no less.
 *
 * Histories from a seed on the services themselves, with a clock that is moved: `SEED=7` walks others.
 */
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
import { DAY_MS } from '../../shared/running/clock.ts'
import { receiveContent } from '../../control/drops/publishing/intake/take-in.ts'
import { blobSizesOf } from '../../control/drops/publishing/manifest/manifest-builder.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'
import { SEED } from '../support/depth.ts'
import { createRandom, type Random } from '../support/random.ts'

const STEPS = 40
const NAMES = ['index.html', 'a.html', 'b.html', 'a/a.html', 'app.js', 'app.css', 'long.txt', 'other.txt', 'data.json']

let control: ComposedServices
let aheadMs = 0

beforeAll(async () => {
  control = await composeServices({}, { now: () => Date.now() + aheadMs })
})
afterAll(() => control.close())

/** Long enough to be compressed; so few that files share what they hold, and versions return to it. */
function contentOf(name: string, random: Random): Buffer {
  const step = random.between(1, 3)
  const words = Array.from({ length: 300 }, (_, index) => `word${(index * step) % 97}`).join(' ')
  return Buffer.from(name.endsWith('.html') ? `<!doctype html><title>x</title><p>${words}` : words)
}

/** One drop, its owner, and what becomes of it. */
function createHistory(actor: Actor, siteId: string, random: Random) {
  const { services, sql } = control
  const files = new Map(NAMES.map((name) => [name, contentOf(name, random)]))
  const running = new AbortController().signal

  async function publish(options: { preview?: string; purge?: 'older' } = {}): Promise<void> {
    for (let changes = random.between(0, 2); changes > 0; changes--) {
      const name = random.pick(NAMES)
      if (name !== 'index.html' && random.chance(0.2)) files.delete(name)
      else files.set(name, contentOf(name, random))
    }
    const limits = { owner: { kind: 'organisation', id: actor.orgId }, capBytes: 10_000_000, maxFiles: 100 } as const
    const prepared = await receiveContent(services.publishing, { ...limits, base: await base() }, async (intake) => {
      for (const [path, bytes] of files) await intake.addFile(path, Readable.from([bytes]))
      return {}
    })
    await services.versions.publish(actor, siteId, prepared, options)
  }

  /** What a publish is made from: the live version, or what was live when it began. */
  async function base(): Promise<string | undefined> {
    const [live, ...others] = await sql<{ manifest_hash: string }[]>`
      select v.manifest_hash from versions v join sites s on s.id = v.site_id
      where s.id = ${siteId} and v.dropped_at is null order by v.id = s.live_version_id desc, v.number`
    return (random.chance(0.8) ? live : random.pick([live, ...others]))?.manifest_hash
  }

  /** No edge serves it, so that it has never been. */
  async function publishInVain(): Promise<void> {
    const refusing = vi.spyOn(services.routing, 'propagate')
    refusing.mockImplementationOnce(async () => ({ pending: true, refused: 'its manifest is of a later format' }))
    await expect(publish()).rejects.toMatchObject({ code: 'not_served' })
    refusing.mockRestore()
  }

  async function promote(): Promise<void> {
    const version = random.pick(await services.versions.list(actor, siteId))
    await services.versions.promote(actor, siteId, version.version_id)
  }

  async function removePreview(): Promise<void> {
    const [named] = await services.previews.list(actor, siteId)
    if (named) await services.previews.remove(actor, siteId, named.name)
  }

  /** As the release before compresses: it ends no span, and says nothing of that. */
  async function leaveOver(): Promise<void> {
    const [newest] = await sql<{ number: number }[]>`
      update versions set spans_of = null where site_id = ${siteId}
        and number = (select max(number) from versions where site_id = ${siteId}) returning number`
    await sql`
      insert into site_blobs (site_id, hash, from_version) values (${siteId}, 'left over', ${newest!.number})
      on conflict do nothing`
    await publish()
  }

  async function pass(): Promise<void> {
    aheadMs += 2 * DAY_MS
    await services.blobCollection.run()
  }

  const deeds: readonly (readonly [weight: number, do_: () => Promise<unknown>])[] = [
    [8, () => publish()],
    [2, () => publish({ preview: 'next' })],
    [1, () => publish({ purge: 'older' })],
    [1, publishInVain],
    [2, promote],
    [1, removePreview],
    [2, () => services.versions.compressDue(running)],
    [3, () => services.versions.refineDue(running)],
    [1, leaveOver],
    [2, pass],
  ]
  const choices = deeds.flatMap(([weight, deed]) => Array.from({ length: weight }, () => deed))

  /** Every blob of a version, its manifest among them. */
  async function neededBy({ manifest_hash }: { manifest_hash: string }): Promise<Set<string>> {
    const manifest = await services.publishing.readManifest(manifest_hash)
    return new Set([...blobSizesOf(manifest).keys(), manifest_hash])
  }

  async function check(after: string): Promise<void> {
    const retained = await sql<{ number: number; manifest_hash: string; next: number }[]>`
      select v.number, v.manifest_hash, s.next_version_number as next from versions v join sites s on s.id = v.site_id
      where s.id = ${siteId} and v.dropped_at is null order by v.number desc`
    for (const version of retained)
      for (const hash of await neededBy(version))
        expect(await services.blobs.has(hash), `${after}: version ${version.number} lacks ${hash}`).toBe(true)
    const [newest] = retained
    if (newest?.number !== newest!.next - 1) return
    const open = await sql<{ hash: string }[]>`
      select hash from site_blobs where site_id = ${siteId} and to_version is null`
    expect(new Set(open.map(({ hash }) => hash)), after).toEqual(await neededBy(newest!))
  }

  return {
    async walk(): Promise<void> {
      await publish()
      for (let step = 0; step < STEPS; step++) {
        const deed = random.below(choices.length)
        await choices[deed]!()
        await check(`step ${step}, deed ${deed}`)
      }
    },
  }
}

test.each([1, 2, 3].map((walked) => 10 * SEED + walked))('a drop and its versions, seed %i', async (seed) => {
  const actor = await control.newActor('free')
  const { value: site } = await control.services.sites.create(actor, {})
  await createHistory(actor, site.id, createRandom(seed)).walk()
})
