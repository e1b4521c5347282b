/**
 * What drops consist of in a run, and what a visitor finds: real manifests with the real rules for files of former
 * versions, read by the real steps of the edge. Each version has one chunk of its own, named after its number.
 *
 *   publish   the chunk of the version before stays beside it, with what that one kept
 *   password  nothing stays, and nothing comes back; the retained versions are behind it too
 *   takedown  nothing stays beside the version that was live; it and the retained ones may come back
 *   purge     nothing stays, and no older version is left
 *   delete    nothing is left
 */
import { createHash } from 'node:crypto'
import { keepFormer } from '../../control/drops/publishing/manifest/kept-files.ts'
import { createClassify, type Classify } from '../../edge/gate/classify.ts'
import { checkState } from '../../edge/gate/state.ts'
import { locate } from '../../edge/locate/locate.ts'
import { indexManifest } from '../../edge/locate/site-index.ts'
import type { Exchange, SiteIndex } from '../../edge/context.ts'
import type { Routes } from '../../edge/store/routes.ts'
import type { KeptFiles, Manifest } from '../../shared/contracts/manifest.ts'
import { DAY_MS } from '../../shared/running/clock.ts'
import type { SiteRoute } from '../../shared/contracts/route-record.ts'
import type { Change } from './scenario.ts'

const SITES_DOMAIN = 'drops'
const MAX_RETAINED = 3
const KEEP_MS = 30 * DAY_MS

export const hostNamed = (name: string): string => `${name}.${SITES_DOMAIN}`

/** What the database knows of a drop's content. */
export interface DropContent {
  /** Number of the version that is live, or was when the drop was taken down. */
  readonly live: number | undefined
  /** Numbers of the versions that can be gone back to, newest first. */
  readonly retained: readonly number[]
  readonly kept: KeptFiles | undefined
}

/** Versions whose files no visitor may get any more at the drop's address, and at the addresses of previews. */
export interface EndedFiles {
  readonly atHost: readonly number[]
  readonly atPreviews: readonly number[]
}

export const NOTHING_ENDED: EndedFiles = { atHost: [], atPreviews: [] }
const NO_CONTENT: DropContent = { live: undefined, retained: [], kept: undefined }

export class Contents {
  readonly #manifests = new Map<string, Manifest>()
  readonly #indexes = new Map<string, SiteIndex>()

  /** What a change makes of a drop, and what ends with it. `all`: every version that was ever committed. */
  changed(
    what: Change,
    version: number,
    { live, retained, kept }: DropContent = NO_CONTENT,
    all: readonly number[] = [],
  ): { content: DropContent; ended: EndedFiles } {
    if (what === 'delete') return { content: NO_CONTENT, ended: { atHost: all, atPreviews: all } }
    if (what === 'takedown')
      return {
        content: { live, retained, kept: undefined },
        ended: { atHost: all.filter((number) => number !== live), atPreviews: [] },
      }
    const left = what === 'purge' ? [version] : [version, ...retained].slice(0, MAX_RETAINED)
    const former = live === undefined ? undefined : { number: live, manifest: ownManifest(live) }
    const staying = keepFormer(ownManifest(version), former, kept, {
      now: 0,
      keepMs: what === 'password' ? 0 : KEEP_MS,
      purge: what === 'purge',
      bounds: { files: 100, bytes: 1000, roomBytes: 1000 },
      isRetained: (number) => left.includes(number),
    })
    const ends = what === 'password' || what === 'purge'
    return {
      content: { live: version, retained: left, kept: staying },
      ended: { atHost: ends ? all : [], atPreviews: what === 'purge' ? all : [] },
    }
  }

  /** What a record says of the content. */
  recordOf({ live, retained, kept }: DropContent): Pick<SiteRoute, 'manifest' | 'versions'> {
    const versions = retained.map((number): [number, string] => [number, this.#stored(ownManifest(number))])
    if (live === undefined) return { manifest: null, versions }
    return { manifest: this.#stored({ ...ownManifest(live), ...(kept && { kept }) }), versions }
  }

  #stored(manifest: Manifest): string {
    const names = [manifest.files, manifest.kept?.files ?? []].map((files) => files.map(([path]) => path).join(' '))
    const hash = createHash('sha256').update(names.join(' beside ')).digest('hex')
    this.#manifests.set(hash, manifest)
    return hash
  }

  indexOf(hash: string): SiteIndex {
    let index = this.#indexes.get(hash)
    if (index === undefined) this.#indexes.set(hash, (index = indexManifest(this.#manifests.get(hash)!)))
    return index
  }
}

const pathOf = (version: number): string => `${version}.js`

function ownManifest(version: number): Manifest {
  const file = { hash: String(version).padStart(64, '0'), size: 1, type: 'text/javascript' }
  return { v: 1, files: [[pathOf(version), file]], redirects: [], headers: [], unserved: [] }
}

/** The steps of a worker from a host to a file. */
export class Reader {
  readonly #classify: Classify
  readonly #contents: Contents

  constructor(routes: Routes, contents: Contents) {
    const secrets = { sign: () => 'signature' }
    this.#classify = createClassify({ routes, serviceHost: 'service', sitesDomain: SITES_DOMAIN, secrets })
    this.#contents = contents
  }

  /** Whether someone whom the gates have let in gets the chunk of this version; `preview`: at its own address. */
  finds(host: string, version: number, preview: boolean): boolean {
    const authority = preview ? `${version}--${host}` : host
    const target = `/${pathOf(version)}`
    const exchange = { authority, target, named() {}, countRequest: () => true, certificateCovers: () => true }
    const destination = this.#classify(exchange as unknown as Exchange)
    if (destination.kind !== 'site') return false
    const { route } = destination.drop
    if (checkState(route, 0).kind === 'closed') return false
    const intent = locate(this.#contents.indexOf(route.manifest!), { target, spaFallback: false, fetchDest: undefined })
    return intent.kind === 'asset' && intent.status === 200
  }
}
