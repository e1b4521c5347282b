/** Links sent by mail: a bearer secret in the mail, its hash in Postgres. */
import type { Clock } from '../../shared/clock.ts'
import { hashSecret, randomSecret } from '../../shared/secrets.ts'
import type { Sql } from '../database/sql.ts'
import type { EnqueueMail } from '../mail/mail.ts'
import { ACCOUNT_PATHS, linkTo } from './account-links.ts'
import type { LinkKind } from './contract.ts'
import { findLink, insertLink, retireLinks } from './queries.ts'
import { LINK_LIFETIMES_MS } from './rules.ts'

export interface Links {
  /** Makes a link and queues the mail with it. `email` is both where it goes and what it proves. */
  send(sql: Sql, kind: LinkKind, to: { userId: string; email: string }): Promise<void>
  isValid(sql: Sql, kind: LinkKind, token: string): Promise<boolean>
}

const PATHS: Readonly<Record<LinkKind, string>> = {
  verify: ACCOUNT_PATHS.verify,
  reset: ACCOUNT_PATHS.reset,
  email_change: ACCOUNT_PATHS.emailChange,
}

export function createLinks({
  clock,
  baseUrl,
  enqueueMail,
}: {
  clock: Clock
  baseUrl: string
  enqueueMail: EnqueueMail
}): Links {
  return {
    async send(sql, kind, { userId, email }) {
      const now = clock.now()
      const token = randomSecret()
      const tokenHash = hashSecret(token)
      // Of several verification mails any may be opened; a reset or a change is meant by the last one only.
      if (kind !== 'verify') await retireLinks(sql, userId, [kind], new Date(now))
      await insertLink(sql, {
        tokenHash,
        kind,
        userId,
        email,
        now: new Date(now),
        expiresAt: new Date(now + LINK_LIFETIMES_MS[kind]),
      })
      await enqueueMail(sql, {
        eventKey: `${kind}:${tokenHash}`,
        to: email,
        template: kind,
        data: { link: linkTo(baseUrl, PATHS[kind], token) },
      })
    },
    async isValid(sql, kind, token) {
      const link = await findLink(sql, kind, hashSecret(token))
      return link !== undefined && link.usedAt === null && link.expiresAt.getTime() > clock.now()
    },
  }
}
