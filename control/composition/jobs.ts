/** What runs by itself, again and again. Each is safe to run on several controls at once. */
import { DAY_MS, HOUR_MS } from '../../shared/running/clock.ts'
import { foldViews, forgetBatches } from '../drops/sites/view-counts.ts'
import { forgetDeletedDrops } from '../drops/sites/kept/deleted-drops.ts'
import { forgetPublishes } from '../drops/sites/kept/publish-records.ts'
import { forgetAudit } from '../people/audit/audit.ts'
import { sweepLists } from '../drops/viewers/lists.ts'
import { mailDigests } from '../drops/threads/digests.ts'
import { foldVisits } from '../drops/visiting/visits.ts'
import { createJobs, type Job, type Jobs } from '../ground/jobs.ts'
import { forgetGoneHosts } from '../ground/routing/gone-hosts.ts'
import type { JobRecords } from '../ground/watching/job-records.ts'
import type { Services } from './services.ts'

/** These pass whole tables for what is refused anyway, by its time, when it is presented. */
const SWEEP_MS = HOUR_MS
/** It lists the whole store; what it removes is at least a day old. */
const BLOB_SWEEP_MS = HOUR_MS
/** A batch of view counts that another control has read but not folded yet is folded or given up by then. */
const VIEW_BATCH_MEMORY_MS = DAY_MS
/** A person who has just published looks whether anyone came. */
const MAX_VIEWS_INTERVAL_MS = 5000
/** A version with more than fits into a publish is compressed within a minute, this wait included. */
const MAX_COMPRESSION_INTERVAL_MS = 5000

/** A person who has just published looks for it; reading takes a second or two of the eight that are promised. */
const MAX_WORDS_INTERVAL_MS = 2500

/** Beside the pause between two questions about one person, this has to fit into a minute. */
const MAX_RECHECK_INTERVAL_MS = 5000

/** Loops that do not wait for each other. */
export function composeJobs(services: Services, records: JobRecords): Jobs[] {
  const { config, log, sql, redis, versions } = services
  const intervalMs = config.jobIntervalMs
  const views: Job = { name: 'views', run: () => foldViews({ sql, redis }) }
  const visits: Job = { name: 'visits', run: () => foldVisits({ sql, redis }) }
  const compression: Job = { name: 'compression', run: (stopping) => versions.compressDue(stopping) }
  const backup: Job = {
    name: 'backup',
    mayTakeMs: config.backupEveryMs,
    run: (stopping) => services.backups.runDue(stopping),
  }
  const refinement: Job = { name: 'refinement', run: (stopping) => versions.refineDue(stopping) }
  const { providerSignIn } = services
  const provider: Job[] = providerSignIn
    ? [{ name: 'provider', run: (stopping) => providerSignIn.recheck(stopping) }]
    : []
  const cards: Job = { name: 'cards', run: (stopping) => services.cards.drawDue(stopping) }
  const words: Job = { name: 'words', run: (stopping) => services.search.readDue(stopping) }
  return [
    createJobs({ jobs: sweeps(services, records), intervalMs, log, records }),
    // People who left are out within a minute, whatever else takes long.
    createJobs({ jobs: provider, intervalMs: Math.min(intervalMs, MAX_RECHECK_INTERVAL_MS), log, records }),
    // What was published is found within seconds.
    createJobs({ jobs: [words], intervalMs: Math.min(intervalMs, MAX_WORDS_INTERVAL_MS), log, records }),
    // Visitors wait for what is not compressed yet.
    createJobs({ jobs: [compression], intervalMs: Math.min(intervalMs, MAX_COMPRESSION_INTERVAL_MS), log, records }),
    // Takes as long as there is something to compress harder.
    createJobs({ jobs: [refinement, cards], intervalMs, log, records }),
    // Takes as long as there is content to copy.
    ...(config.backupTo === undefined ? [] : [createJobs({ jobs: [backup], intervalMs, log, records })]),
    // Short, and looked at by people.
    createJobs({ jobs: [views, visits], intervalMs: Math.min(intervalMs, MAX_VIEWS_INTERVAL_MS), log, records }),
  ]
}

async function forgetRecords({ sql, redis, routing, clock, config }: Services): Promise<void> {
  await forgetGoneHosts(sql, redis, new Date(clock.now()))
  if (config.recordsKeptMs === undefined) return
  const before = new Date(clock.now() - config.recordsKeptMs)
  await forgetAudit(sql, before)
  await forgetPublishes(sql, before)
  await forgetDeletedDrops({ sql, sitesDomain: config.sitesDomain, propagate: routing.propagate }, before)
}

async function sweepFactors({ factors, passkeys }: Pick<Services, 'factors' | 'passkeys'>): Promise<void> {
  await factors.sweep()
  await passkeys.sweep()
}

function sweeps(services: Services, records: JobRecords): Job[] {
  const { sql, clock, log } = services
  return [
    {
      name: 'lifecycle',
      async run() {
        const { held } = await services.lifecycle.run()
        records.holds('lifecycle', held)
        if (held > 0)
          log.warn({ drops: held }, 'so many drops are due to be removed that none is; see "admin run-lifecycle --all"')
      },
    },
    { name: 'plans', run: () => services.lifecycle.joinFirstPlan() },
    { name: 'uploads', run: () => services.uploads.sweep() },
    { name: 'content uploads', atMostEveryMs: SWEEP_MS, run: () => services.contentUploads.sweep() },
    { name: 'spent proofs', atMostEveryMs: SWEEP_MS, run: () => services.anonymous.sweep() },
    { name: 'accounts', atMostEveryMs: SWEEP_MS, run: () => services.accounts.sweep() },
    { name: 'webhooks', atMostEveryMs: SWEEP_MS, run: () => services.webhookCourier.sweep() },
    { name: 'mail', run: () => services.mailer.sweep() },
    { name: 'factors', atMostEveryMs: SWEEP_MS, run: () => sweepFactors(services) },
    { name: 'publishers', atMostEveryMs: SWEEP_MS, run: () => services.publishers.sweep() },
    { name: 'oauth', atMostEveryMs: SWEEP_MS, run: () => services.oauth.sweep() },
    {
      name: 'view batches',
      atMostEveryMs: SWEEP_MS,
      run: () => forgetBatches(sql, new Date(clock.now() - VIEW_BATCH_MEMORY_MS)),
    },
    { name: 'visitors', atMostEveryMs: SWEEP_MS, run: () => services.visitDesk.sweep() },
    {
      name: 'viewers',
      atMostEveryMs: SWEEP_MS,
      run: () => sweepLists(sql, new Date(clock.now()), new Date(clock.now() - VIEW_BATCH_MEMORY_MS)),
    },
    {
      name: 'comments',
      run: () => mailDigests({ ...services, baseUrl: services.config.baseUrl }),
    },
    { name: 'pasted images', atMostEveryMs: SWEEP_MS, run: () => services.threadImages.sweep() },
    { name: 'records', atMostEveryMs: SWEEP_MS, run: () => forgetRecords(services) },
    { name: 'billing', run: () => services.billing.reconcile() },
    {
      name: 'blobs',
      atMostEveryMs: BLOB_SWEEP_MS,
      async run() {
        const { held } = await services.blobCollection.run()
        records.holds('blobs', held)
        if (held > 0)
          log.warn(
            { blobs: held },
            'the database does not know most of the blob store, so nothing is removed from it; see "admin sweep --all"',
          )
      },
    },
  ]
}
