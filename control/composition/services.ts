/**
 * Every capability of the control plane, composed floor by floor. The web server, the jobs and the admin command share
 * this. What a lower floor needs of a higher one is handed down as a function.
 */
import { createOAuth, type OAuth } from '../doors/oauth/oauth.ts'
import { createSearch, type Search } from '../doors/search/search.ts'
import { createServiceStatus, type ServiceStatus } from '../doors/status/status.ts'
import { createReviewers, type Reviewers } from '../drops/review/reviewers.ts'
import { createVisitDesk, type VisitDesk } from '../drops/visiting/visit-desk.ts'
import { fetchPublic } from '../ground/http/public-fetch.ts'
import { installTerms } from '../ground/terms/plans.ts'
import { API_TOKEN_PREFIX } from '../people/access/access.ts'
import { composeDrops, type Drops } from './drops.ts'
import { openGround, type ControlOptions, type Ground } from './ground.ts'
import { createHooks } from './hooks.ts'
import { composePeople, type People } from './people.ts'
import { composePlans, type Plans } from './plans.ts'

export interface Services extends Ground, Drops, Plans, People {
  readonly serviceStatus: ServiceStatus
  readonly oauth: OAuth
  readonly search: Search
  readonly visitDesk: VisitDesk
  readonly reviewers: Reviewers
  close(): Promise<void>
}

export function createServices(options: ControlOptions): Services {
  installTerms(options.config.terms)
  const ground = openGround(options)
  const drops = composeDrops(ground)
  const plans = composePlans(ground, drops, {
    closeUnverified: () => people.accounts.closeUnverified(),
    tellEndingTokens: (clock) => people.tokens.tellEnding(clock),
  })
  const hooks = createHooks(drops, plans, { endGrantsOf: (...event) => oauth.endGrantsOf(...event) })
  const oauth = createOAuth({ ...ground, ...ground.config, fetchDocument: fetchPublic, hooks })
  const people = composePeople(ground, drops, { hooks, oauth, publishers: drops.publishers })
  const { baseUrl } = ground.config
  const visitDesk = createVisitDesk({
    ...ground,
    async machineActor(token, ip) {
      if (token.startsWith(API_TOKEN_PREFIX)) return people.access.tokenActor(token, ip)
      return (await oauth.actorOf(token, `${baseUrl}/mcp`, ip)) ?? oauth.actorOf(token, `${baseUrl}/api/v1`, ip)
    },
  })
  return {
    ...ground,
    ...drops,
    ...plans,
    ...people,
    oauth,
    search: createSearch({ ...ground, ...drops }),
    visitDesk,
    reviewers: createReviewers({ ...ground, ...drops, baseUrl, authenticate: people.access.authenticate }),
    serviceStatus: createServiceStatus({ ...ground, ...drops }),
    async close() {
      await drops.domainWatch.stop()
      await ground.mailer.stop()
      await drops.webhookCourier.stop()
      await drops.routing.stop()
      await Promise.all([drops.publishing.close(), drops.inspector.close()])
      ground.redis.disconnect()
      ground.publisherRedis.disconnect()
      await ground.sql.end({ timeout: 5 })
    },
  }
}
