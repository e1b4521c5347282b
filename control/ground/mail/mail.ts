/** The write side of mail: inside the transaction of the event it tells about, so that both commit or neither. */
import type { Clock } from '../../../shared/running/clock.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { HOUSE_LOOK, type Look } from '../../../shared/pages/look.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import type { Sql } from '../database/sql.ts'
import { isNobody } from './address.ts'
import { deleteMailsAbout, deleteMailsTo, insertMail } from './queries.ts'
import { renderMail, type MailData, type MailTemplate } from './letters/templates.ts'

interface NewMail<Name extends MailTemplate> {
  /** Names the event: the same key never sends twice. */
  readonly eventKey: string
  readonly to: string
  readonly template: Name
  readonly data: MailData[Name]
}

export type EnqueueMail = <Name extends MailTemplate>(sql: Sql, mail: NewMail<Name>) => Promise<void>

interface EnqueueDependencies {
  readonly secrets: Pick<Secrets, 'seal'>
  readonly clock: Clock
  /** The name and the colours that mails show; unset: the house's own. */
  readonly look?: Look
}

export function createEnqueueMail({ secrets, clock, look = HOUSE_LOOK }: EnqueueDependencies): EnqueueMail {
  return async (sql, { eventKey, to, template, data }) => {
    if (isNobody(to)) return
    const id = newId('mail')
    const sealed = secrets.seal(JSON.stringify(renderMail(template, data, look)), sealContext(id))
    await insertMail(sql, { id, eventKey, recipient: to, template, sealed, now: new Date(clock.now()) })
  }
}

/** Links in a mail are secrets: what lies in the table can be opened with SECRET_KEY and for this row only. */
export function sealContext(mailId: string): string {
  return `mail:${mailId}`
}

/** Forgets every mail to these addresses. */
export const eraseMailsTo = (sql: Sql, addresses: readonly string[]): Promise<void> => deleteMailsTo(sql, addresses)

/** Forgets every mail whose event key begins so. */
export const eraseMailsAbout = (sql: Sql, keyPrefix: string): Promise<void> => deleteMailsAbout(sql, keyPrefix)
