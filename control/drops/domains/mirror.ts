/**
 * A copy in Postgres of what the edges keep in Redis about certificates (sealed bundles, retry states, the ACME
 * account), so that a Redis that lost everything is filled again and no certificate has to be ordered twice.
 */
import type { ChainableCommander, Redis } from 'ioredis'
import { certificateFacts, openBundle } from '../../../shared/certificates/bundle.ts'
import { decodeRetryState, type RetryState } from '../../../shared/certificates/retry.ts'
import { keys } from '../../../shared/redis/keys.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import { encodeDomainWish } from '../../../shared/redis/stream.ts'
import { transaction, type Pool } from '../../ground/database/sql.ts'
import * as queries from './queries.ts'
import type { CertificateRow } from './queries.ts'

const PAGE = 500

interface MirrorDependencies {
  sql: Pool
  redis: Redis
  secrets: Secrets
  log: Log
  /** The service's own, which no domain in the database asks for (own-names.ts). */
  ownNames: readonly string[]
}

export interface Mirror {
  /** Keeps a bundle that the edges announced; '' forgets it. */
  keep(name: string, sealed: string): Promise<void>
  /** What the log did not tell (control was away) is read from Redis itself. */
  learn(name: string): Promise<void>
  all(): Promise<CertificateRow[]>
  /** Returns the names whose certificate was news. */
  catchUp(): Promise<string[]>
  /** Retry states and the account change rarely; they are copied whole. Nothing is copied from an unfinished Redis. */
  copyState(): Promise<void>
  /** Fills an empty Redis; what is there already stays. */
  republish(target: Redis): Promise<void>
}

export function createMirror({ sql, redis, secrets, log, ownNames }: MirrorDependencies): Mirror {
  async function keep(name: string, sealed: string): Promise<void> {
    if (sealed === '') return queries.deleteCertificate(sql, name)
    // First: a backup that has the certificate then has the account that ordered it. Redis away: `copyState` follows.
    await copyAccount().catch(() => {})
    try {
      const facts = certificateFacts(openBundle(secrets, name, sealed).cert)
      await queries.saveCertificate(sql, {
        name,
        sealed,
        not_before: new Date(facts.notBeforeMs),
        not_after: new Date(facts.notAfterMs),
      })
    } catch (error) {
      log.warn({ err: error, domain: name }, 'a certificate in Redis cannot be read')
    }
  }

  async function copyAccount(): Promise<void> {
    const account = await redis.get(keys.acmeAccount)
    if (account !== null) await queries.saveAccount(sql, account)
  }

  async function learn(name: string): Promise<void> {
    const sealed = await redis.hget(keys.certificates, name).catch(() => null)
    if (sealed !== null) await keep(name, sealed)
  }

  async function all(): Promise<CertificateRow[]> {
    const rows: CertificateRow[] = []
    for (;;) {
      const page = await queries.certificatesAfter(sql, rows.at(-1)?.name ?? '', PAGE)
      if (page.length === 0) return rows
      rows.push(...page)
    }
  }

  return {
    keep,
    learn,
    all,

    async catchUp() {
      const missing = await queries.namesWithoutCertificate(sql)
      for (const name of [...missing, ...ownNames]) await learn(name)
      const still = new Set(await queries.namesWithoutCertificate(sql))
      return missing.filter((name) => !still.has(name))
    },

    async copyState() {
      if (!(await redis.exists(keys.epoch))) return
      const retries = await redis.hgetall(keys.acmeRetry)
      const states = new Map<string, RetryState>()
      for (const [name, text] of Object.entries(retries)) {
        const state = decodeRetryState(text)
        if (state) states.set(name, state)
      }
      await transaction(sql, (tx) => queries.replaceRetries(tx, states))
      await copyAccount()
    },

    async republish(target) {
      for (let after = ''; ;) {
        const page = await queries.certificatesAfter(sql, after, PAGE)
        const last = page.at(-1)
        if (!last) break
        const pipeline = target.pipeline()
        for (const { name, sealed } of page) pipeline.hsetnx(keys.certificates, name, sealed)
        await allTaken(pipeline)
        after = last.name
      }
      const pipeline = target.pipeline()
      for (const { domain, org_id: organisation } of await queries.wantedDomains(sql))
        pipeline.hset(keys.domains, domain, encodeDomainWish({ wanted: true, organisation }))
      for (const { name, state } of await queries.allRetries(sql))
        pipeline.hsetnx(keys.acmeRetry, name, JSON.stringify(state))
      const account = await queries.readAccount(sql)
      if (account !== undefined) pipeline.setnx(keys.acmeAccount, account)
      await allTaken(pipeline)
    },
  }
}

/** A command can be refused alone. The snapshot is called complete after this, so nothing may be missing. */
async function allTaken(pipeline: ChainableCommander): Promise<void> {
  const refused = (await pipeline.exec())?.find(([error]) => error)?.[0]
  if (refused) throw refused
}
