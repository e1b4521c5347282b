import { describe, expect, test } from 'vitest'
import { keepText, ownedArgument, refusalText } from '../../../control/doors/mcp/anonymous/rules.ts'
import { errors } from '../../../shared/contracts/errors.ts'

const SIGN_IN = 'https://a.test/mcp'
const now = Date.UTC(2026, 10, 17, 12)

test.each<[unknown, string | undefined]>([
  [{ content: 'x', slug: 'mine' }, 'slug'],
  [{ content: 'x', id: 'st_1' }, 'id'],
  [{ content: 'x' }, undefined],
  [Object.create({ slug: 'inherited' }), undefined],
  [undefined, undefined],
  [null, undefined],
  ['slug', undefined],
])('what only an owner can ask for: %j → %s', (args, name) => {
  const refusal = ownedArgument(args, SIGN_IN)
  if (name === undefined) expect(refusal).toBeUndefined()
  else expect(refusal).toMatch(new RegExp(`^${name}: .*${SIGN_IN}`))
})

test('how to keep a page names the link, the end and where to go on', () => {
  const text = keepText('https://a.test/claim?token=x', '2026-11-24T12:00:00.000Z', SIGN_IN)
  for (const part of ['https://a.test/claim?token=x', '2026-11-24T12:00:00.000Z', SIGN_IN]) expect(text).toContain(part)
})

describe('a refusal', () => {
  const told = (error: Parameters<typeof refusalText>[0]) => refusalText(error, { now, signIn: SIGN_IN })
  test('about a limit says when to come back, and that signing in ends the wait', () => {
    expect(told(errors.rateLimited(1800))).toBe(
      `rate_limited: Too many pages were published without an account, perhaps by others who share your network. Come back in 30 minutes (at 2026-11-17T12:30:00.000Z). Or sign in at ${SIGN_IN}, where this limit does not apply.`,
    )
    expect(told(errors.rateLimited(5))).toContain('Come back in a minute (at 2026-11-17T12:00:05.000Z)')
  })
  test.each([
    ['a proof', errors.publishProofRequired({ challenge: 'c', bits: 1 }), /^proof_required: .*https:\/\/a\.test\/mcp/],
    [
      'what looks harmful',
      errors.contentRejected('No.'),
      /^content_rejected: No\. Or sign in at https:\/\/a\.test\/mcp\.$/,
    ],
    ['size', errors.uploadTooLarge(2e6), /^upload_too_large: .*2 MB.*https:\/\/a\.test\/mcp\.$/],
    ['a fault of ours', errors.internal('err_1'), /^internal: .* err_1$/],
    ['anything else', errors.invalidRequest('x: no.'), /^invalid_request: x: no\.$/],
  ])('about %s', (_what, error, words) => {
    expect(told(error)).toMatch(words)
  })
})
