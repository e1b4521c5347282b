/** The gates of an edge, and all that stands behind them, over routes that the test makes up. */
import { Readable } from 'node:stream'
import type { Exchange, ServedSite } from '../../edge/context.ts'
import { createAdmissions } from '../../edge/gate/admissions.ts'
import { createClassify } from '../../edge/gate/classify.ts'
import { createPreviewGate, type PreviewGateDependencies } from '../../edge/gate/members.ts'
import { createFraming } from '../../edge/gate/review.ts'
import { createUnlock } from '../../edge/gate/unlock.ts'
import { createViewing } from '../../edge/gate/viewing.ts'
import { indexFiles, indexSite } from '../../edge/locate/site-index.ts'
import { createPipeline } from '../../edge/pipeline.ts'
import { createAnswers } from '../../edge/processes/answers.ts'
import { createMachines } from '../../edge/processes/machines/machines.ts'
import { createRepresentations } from '../../edge/processes/representations.ts'
import { createSnippets } from '../../edge/rewrite/snippets.ts'
import { createViews } from '../../edge/send/views.ts'
import { createVisits } from '../../edge/send/visits.ts'
import { createBlobCache } from '../../edge/store/blob-cache.ts'
import type { Watching } from '../../edge/store/live/watching.ts'
import { createSites } from '../../edge/store/sites.ts'
import { encodeManifest } from '../../shared/contracts/manifest.ts'
import type { VisitAnswer } from '../../shared/contracts/visit-desk.ts'
import type { Clock } from '../../shared/running/clock.ts'
import { createLog } from '../../shared/running/log.ts'
import { createProofOfWork } from '../../shared/secrets/proof-of-work.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { manifestOf } from './manifests.ts'

const BASE_URL = 'https://dropway.test'
const MANIFEST_HASH = 'a'.repeat(64)
const PAGE = Buffer.from('index.html')
const log = createLog('gates', 'silent')

export const gateSecrets = createSecrets('k'.repeat(32))

interface GatesOptions {
  readonly clock: Clock
  readonly watching: Watching
  siteAt(host: string): ServedSite | undefined
  /** What control says of a token at a preview for members. */
  readonly isMembers: PreviewGateDependencies['ask']
  /** What control says of a token at a drop for viewers. */
  readonly visitAnswer?: VisitAnswer
}

export function createGates({
  clock,
  watching,
  siteAt,
  isMembers,
  visitAnswer = { kind: 'refused', reason: 'machine' },
}: GatesOptions): (exchange: Exchange) => void {
  const stored = encodeManifest(manifestOf(['index.html']))
  const blobs = {
    read: async (hash: string) => (hash === MANIFEST_HASH ? Buffer.from(stored) : PAGE),
    stream: () => Readable.from([]),
  }
  const cache = createBlobCache(1_000_000)
  const sites = createSites(blobs, { indexFiles, indexSite })
  const answers = createAnswers({ baseUrl: BASE_URL, publicPort: undefined, log })
  const machines = createMachines({ blobs, cache, sites, publicPort: undefined })
  const secrets = gateSecrets
  return createPipeline({
    classify: createClassify({
      routes: {
        get: siteAt,
        manifestOf: () => MANIFEST_HASH,
        isComplete: () => true,
        forget() {},
        forgetAll() {},
        rememberNothing() {},
      },
      serviceHost: 'dropway.test',
      sitesDomain: 'dropway.test',
      secrets,
    }),
    unlock: createUnlock({ secrets, proofOfWork: createProofOfWork(secrets), clock, tell() {} }),
    members: createPreviewGate({ secrets, clock, baseUrl: BASE_URL, ask: isMembers }),
    sites,
    representations: createRepresentations({ blobs, cache, snippets: createSnippets({ baseUrl: BASE_URL }), machines }),
    machines,
    answers,
    proxy: { forward() {}, inUse: () => 0, close() {} },
    viewing: createViewing({
      admissions: createAdmissions({ secrets, clock }),
      line: { ask: async () => visitAnswer },
      answers,
      isLookedAt: () => false,
      clock,
    }),
    framing: createFraming({ secrets, clock }),
    watching,
    visits: createVisits(),
    views: createViews(),
    clock,
    log,
  })
}
