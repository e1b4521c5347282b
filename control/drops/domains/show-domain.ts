/** A domain as the API shows it, with the other half of its pair. */
import type { Diagnosis, RecordLine } from './doctor/diagnose.ts'
import { unicodeOf } from './dns/names.ts'
import type { DomainRow } from './queries.ts'
import type { ApiDomain, ApiSingleDomain } from './schemas.ts'

/** What a name has to show before anything was looked at. */
type FirstAdvice = (row: DomainRow) => Promise<Pick<Diagnosis, 'records' | 'alternative'>>

export async function showDomain(
  row: DomainRow,
  all: readonly DomainRow[],
  firstAdvice: FirstAdvice,
): Promise<ApiDomain> {
  const pair = all.find((other) => other.redirect_to === row.domain)
  return { ...(await showSingle(row, firstAdvice)), pair: pair ? await showSingle(pair, firstAdvice) : null }
}

async function showSingle(row: DomainRow, firstAdvice: FirstAdvice): Promise<ApiSingleDomain> {
  const first = await firstAdvice(row)
  const { records, alternative } = row.checked_at === null ? first : row
  return {
    domain: row.domain,
    unicode: unicodeOf(row.domain),
    state: row.state,
    reason: row.reason,
    detail: row.detail,
    record: nextLine(records) ?? first.records[0]!,
    records: [...records],
    alternative,
    warnings: [...row.warnings],
    checked_at: row.checked_at?.toISOString() ?? null,
    next_check_at: row.next_check_at?.toISOString() ?? null,
    next_try_at: row.next_try_at?.toISOString() ?? null,
    certificate: row.holds && row.not_after ? { not_after: row.not_after.toISOString() } : null,
    redirect_to: row.redirect_to,
    created_at: row.created_at.toISOString(),
  }
}

/** What to set next. */
function nextLine(records: readonly RecordLine[]): RecordLine | undefined {
  return records.find(({ action }) => action !== 'remove') ?? records[0]
}
