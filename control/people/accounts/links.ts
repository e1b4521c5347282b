/** Links sent by mail: a bearer secret in the mail, its hash in Postgres. */
import type { Clock } from '../../../shared/running/clock.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets/secrets.ts'
import type { Sql } from '../../ground/database/sql.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { ACCOUNT_PATHS, linkTo } from '../../ground/mail/links.ts'
import type { LinkKind } from './contract.ts'
import { findLink, insertLink, listOwnedSlugs, retireLinks } from './queries.ts'
import { LINK_LIFETIMES_MS } from './rules.ts'

export interface Links {
  /** Makes a link and queues the mail with it. `email` is both where it goes and what it proves. */
  send(sql: Sql, kind: LinkKind, to: { userId: string; email: string }): Promise<void>
  /** The address to put into another mail. */
  make(sql: Sql, kind: LinkKind, to: { userId: string; email: string }, expiresAt: Date): Promise<string>
  isValid(sql: Sql, kind: LinkKind, token: string): Promise<boolean>
  /** Tells the owner of an address that someone signed up with it again. No link of it proves anything. */
  tellOwner(sql: Sql, email: string): Promise<void>
}

const PATHS: Readonly<Record<LinkKind, string>> = {
  verify: ACCOUNT_PATHS.verify,
  reset: ACCOUNT_PATHS.reset,
  email_change: ACCOUNT_PATHS.emailChange,
}

export function createLinks({
  clock,
  baseUrl,
  dropUrl,
  enqueueMail,
}: {
  clock: Clock
  baseUrl: string
  dropUrl: (slug: string) => string
  enqueueMail: EnqueueMail
}): Links {
  async function make(
    sql: Sql,
    kind: LinkKind,
    { userId, email }: { userId: string; email: string },
    expiresAt: Date,
  ): Promise<{ tokenHash: string; link: string }> {
    const token = randomSecret()
    const tokenHash = hashSecret(token)
    await insertLink(sql, { tokenHash, kind, userId, email, now: new Date(clock.now()), expiresAt })
    return { tokenHash, link: linkTo(baseUrl, PATHS[kind], token) }
  }

  return {
    tellOwner: (sql, email) =>
      enqueueMail(sql, {
        eventKey: `sign_up_again:${newId('mail')}`,
        to: email,
        template: 'sign_up_again',
        data: { signInLink: `${baseUrl}/signin`, resetLink: baseUrl + ACCOUNT_PATHS.reset },
      }),
    make: async (sql, kind, to, expiresAt) => (await make(sql, kind, to, expiresAt)).link,
    async send(sql, kind, to) {
      const now = clock.now()
      // Any of several verification mails may be opened; a reset or a change is meant by the last one only.
      if (kind !== 'verify') await retireLinks(sql, to.userId, [kind], new Date(now))
      const until = new Date(now + LINK_LIFETIMES_MS[kind])
      const { tokenHash, link } = await make(sql, kind, to, until)
      const mail = { eventKey: `${kind}:${tokenHash}`, to: to.email }
      if (kind !== 'verify') return enqueueMail(sql, { ...mail, template: kind, data: { link, until } })
      const drops = (await listOwnedSlugs(sql, to.userId)).map((slug) => ({ name: slug, url: dropUrl(slug) }))
      await enqueueMail(sql, { ...mail, template: 'verify', data: { link, until, drops } })
    },
    async isValid(sql, kind, token) {
      const link = await findLink(sql, kind, hashSecret(token))
      return link !== undefined && link.usedAt === null && link.expiresAt.getTime() > clock.now()
    },
  }
}
