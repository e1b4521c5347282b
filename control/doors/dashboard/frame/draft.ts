/**
 * A form that was not accepted: what was typed, and what is wrong with it. It comes back on the page where the form
 * stands, so that nothing has to be typed twice.
 */
import type { ApiError } from '../../../../shared/contracts/errors.ts'
import { CSRF_FIELD } from '../../../people/access/csrf.ts'

/** The organisation that a page was made for, in each of its forms. */
export const ACTING_FOR_FIELD = 'acting_for'

export interface Draft {
  /** Where the form goes: a path of ours. */
  readonly action: string
  readonly values: URLSearchParams
  /** What is wrong, by the name of the field; under `''` what is wrong with the whole. */
  readonly problems: ReadonlyMap<string, string>
  /** What the browser has to work out before the form may be sent again. */
  readonly work?: Work | undefined
  /** Set by the form that shows it. The frame says what no form of the page has said. */
  isShown: boolean
}

export interface Work {
  readonly challenge: string
  readonly bits: number
}

/** Names that a service gives to what it refuses, and the code of a refusal, as the form calls the field. */
export type FieldNames = Readonly<Record<string, string>>

const USUAL_NAMES: FieldNames = {
  slug_taken: 'slug',
  slug_reserved: 'slug',
  domain_taken: 'domain',
  email_taken: 'email',
  wrong_credentials: 'password',
}

/** Never shown again, nor carried to another page: secrets, and what each page has of its own. */
const KEPT_BACK: ReadonlySet<string> = new Set(['password', 'current', 'new', 'proof', CSRF_FIELD, ACTING_FOR_FIELD])

export function draftOf(
  action: string,
  sent: URLSearchParams,
  problem: Pick<ApiError, 'code' | 'message' | 'fields'>,
  names: FieldNames = {},
): Draft {
  const values = new URLSearchParams([...sent].filter(([name]) => !KEPT_BACK.has(name)))
  return { action, values, problems: problemsOf(problem, sent, names), work: workOf(problem), isShown: false }
}

function workOf({ code, fields }: Pick<ApiError, 'code' | 'fields'>): Work | undefined {
  return code === 'proof_required'
    ? { challenge: fields['challenge'] as string, bits: fields['bits'] as number }
    : undefined
}

/** Services name fields: `slug: use …; name: …`. What names none of the form's is about the whole. */
function problemsOf(
  { code, message }: Pick<ApiError, 'code' | 'message'>,
  sent: URLSearchParams,
  names: FieldNames,
): Map<string, string> {
  const problems = new Map<string, string>()
  const fieldOf = (name: string): string => names[name] ?? USUAL_NAMES[name] ?? name
  const add = (name: string, text: string): void => {
    const field = sent.has(fieldOf(name)) ? fieldOf(name) : ''
    const words = text.charAt(0).toUpperCase() + text.slice(1)
    const known = problems.get(field)
    problems.set(field, known === undefined ? words : `${known} ${words}`)
  }
  for (const part of message.split(/; (?=[a-z_.]{1,60}: )/)) {
    const named = /^([a-z_.]{1,60}): (.+)$/s.exec(part)
    if (named?.[1] !== undefined && named[2] !== undefined) add(named[1], named[2])
    else add(code, part)
  }
  return problems
}

/** What a draft says of itself before it was sent to anyone: to be looked at and sent again. */
export function draftAgain(action: string, values: URLSearchParams, words: string): Draft {
  return draftOf(action, values, { code: '', message: words, fields: {} })
}
