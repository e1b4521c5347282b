/**
 * What a person was about to send when their session ended travels with the sign-in form, in two hidden fields, and
 * comes back after it. It is never kept on our side.
 */
import { parseForm } from '../../../../shared/http/form.ts'
import { MAX_TEXT_FORM_BYTES } from '../../../../shared/contracts/limits.ts'
import type { Draft } from '../frame/draft.ts'

const ACTION_FIELD = 'draft_for'
const VALUES_FIELD = 'draft'

/** Encoded, and beside the other fields, it has to fit into what a form may hold. */
const MAX_CARRIED_CHARS = MAX_TEXT_FORM_BYTES / 2

export interface Carried {
  /** The hidden fields of the sign-in form; none when it is opened by itself. */
  readonly fields: Readonly<Record<string, string>>
  /** It cannot travel: it stays on the sign-in page, to be sent from there. */
  readonly left?: Draft
}

/** `leavesPage`: people also sign in elsewhere, from where no form of ours brings anything back. */
export function carry(
  signInAction: string,
  draft: Draft | undefined,
  { leavesPage }: { leavesPage: boolean },
): Carried {
  if (!draft || draft.action === signInAction) return { fields: carriedOn(draft?.values) }
  const values = draft.values.toString()
  return leavesPage || values.length > MAX_CARRIED_CHARS
    ? { fields: {}, left: draft }
    : { fields: { [ACTION_FIELD]: draft.action, [VALUES_FIELD]: values } }
}

/** What came with a sign-in goes on with the next step of it, or with the next attempt. */
export function carriedOn(sent: URLSearchParams | undefined): Readonly<Record<string, string>> {
  const action = sent?.get(ACTION_FIELD) ?? null
  return action === null ? {} : { [ACTION_FIELD]: action, [VALUES_FIELD]: sent?.get(VALUES_FIELD) ?? '' }
}

export function carriedIn(sent: URLSearchParams): { action: string; values: URLSearchParams } | undefined {
  const action = sent.get(ACTION_FIELD)
  const values = parseForm(sent.get(VALUES_FIELD) ?? '')
  return action === null || typeof values === 'string' ? undefined : { action, values }
}
