/** Search over names, titles and text of an organisation's drops. Text is read after a publish, which does not wait for it. */
import { errors } from '../../../shared/contracts/errors.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { Actor } from '../../ground/actor.ts'
import type { Pool } from '../../ground/database/sql.ts'
import type { Publishing } from '../../drops/publishing/contract.ts'
import type { ApiSite } from '../../drops/sites/schemas.ts'
import type { Sites } from '../../drops/sites/sites.ts'
import { questionOf } from '../../drops/publishing/analysis/words.ts'
import { markedWords, markOf, namesQuestionOf, partsOf, patternOf } from './rules.ts'
import * as queries from './queries.ts'

/** What a person looks through; more words find fewer. */
const MAX_FOUND = 100
/** A question is a line, not a page. */
export const MAX_QUESTION_CHARS = 200
/** A reader that has not finished by then is taken for dead. */
const TAKEN_SECONDS = 120

export interface Search {
  /**
   * The drops that the credential is for and that have all words of the question, the best first, at most a hundred. An empty
   * question finds all.
   */
  find(actor: Actor, question: string): Promise<ApiSite[]>
  /** Reads the words of what has gone live since the last run; resolves how many drops. */
  readDue(stopping: AbortSignal): Promise<number>
}

export interface SearchDependencies {
  readonly sql: Pool
  readonly log: Log
  readonly sites: Pick<Sites, 'list' | 'showSome'>
  readonly publishing: Pick<Publishing, 'searchedTexts'>
}

export function createSearch({ sql, log, sites, publishing }: SearchDependencies): Search {
  async function readWords(due: queries.WordsDue): Promise<void> {
    if (due.live) await readLive(due.site_id, due.live)
    await queries.forgetDue(sql, due)
  }

  /** Most versions change none of the pages that are read, and are found by the words of the one before. */
  async function readLive(siteId: string, live: queries.LiveContent): Promise<void> {
    const texts = await publishing.searchedTexts(live.manifest_hash)
    const mark = markOf(live.org_id)
    const source = `${mark} ${texts.digest}`
    if (await queries.carryWords(sql, siteId, live, { source, mark })) return
    const words = await texts.readWords()
    // Nothing is also what was read of texts that took too long: the next version is another attempt.
    const readFrom = words.length === 0 ? undefined : source
    await queries.writeWords(sql, siteId, live, { words: markedWords(words, mark), source: readFrom })
  }

  return {
    async find(actor, question) {
      if (question.length > MAX_QUESTION_CHARS)
        throw errors.invalidRequest(`q: a question has at most ${MAX_QUESTION_CHARS} characters.`)
      const parts = partsOf(question)
      if (parts.length === 0) return sites.list(actor)
      const mark = markOf(actor.orgId)
      const ids = await queries.findByWords(sql, {
        orgId: actor.orgId,
        among: actor.reach.sites,
        question: questionOf(question, mark),
        namesQuestion: namesQuestionOf(parts, mark),
        patterns: parts.map(patternOf),
        most: MAX_FOUND,
      })
      return sites.showSome(actor, ids)
    },

    async readDue(stopping) {
      let count = 0
      while (!stopping.aborted) {
        const due = await queries.takeDue(sql, TAKEN_SECONDS)
        if (!due) break
        await readWords(due).catch((error: unknown) =>
          log.warn({ err: error, site: due.site_id }, 'the words of a drop could not be read; it is tried again'),
        )
        count++
      }
      return count
    },
  }
}
