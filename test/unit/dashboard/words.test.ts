import { expect, test } from 'vitest'
import { deedInWords, whoInWords } from '../../../control/doors/dashboard/account/audit-words.ts'
import { viewsChart } from '../../../control/doors/dashboard/parts/charts.ts'
import { planTable } from '../../../control/doors/dashboard/parts/plan-table.ts'

const DROPS = new Map([['st_1', 'Holiday']])

test.each([
  ['site.published', 'st_1', { version: 3, via: 'session' }, 'Published version 3 of Holiday'],
  ['site.published', 'st_1', { version: 3, via: 'token' }, 'Published version 3 of Holiday, with an API token'],
  ['site.published', 'st_9', { version: 1 }, 'Published version 1 of a drop that is deleted'],
  ['site.deleted', 'st_9', { slug: 'tidy-grove' }, 'Deleted tidy-grove'],
  ['site.updated', 'st_1', { fields: ['name', 'slug'] }, 'Changed the name and the address of Holiday'],
  [
    'site.updated',
    'st_1',
    { fields: ['spa_fallback', 'gallery', 'password'] },
    'Changed the behaviour, the place in the gallery and the password of Holiday',
  ],
  ['site.chosen', 'org_1', { chosen: ['st_1'], pause: ['st_2'] }, 'Chose the drops that stay live'],
  ['site.taken_down', 'st_1', { slug: 'x', reason: 'spam' }, 'Took down Holiday: spam'],
  ['domain.added', 'a.example', { site: 'st_1' }, 'Added the domain a.example to Holiday'],
  ['token.revoked', 'tok_1', { name: 'CI' }, 'Revoked the API token “CI”'],
  ['organisation.created', 'org_1', { name: 'Night Shift' }, 'Created the organisation “Night Shift”'],
  [
    'member.role_changed',
    'a@example.com',
    { from: 'member', to: 'admin' },
    'Made a@example.com admin instead of member',
  ],
  ['member.joined', 'a@example.com', {}, 'Joined'],
  ['billing.plan_changed', 'plus', { from: 'free' }, 'Changed the plan to Plus from Free'],
  ['oauth.allowed', 'Editor', { scopes: ['mcp'], via: 'oauth' }, 'Let the app “Editor” in, through a connected app'],
  ['account.email_changed', 'usr_1', { from: 'old@example.com' }, 'Changed the e-mail address from old@example.com'],
  ['site.publish', 'st_1', {}, 'site publish'],
])('%s of %s reads as a sentence', (action, subject, detail, words) => {
  expect(deedInWords({ action, subject, detail }, DROPS)).toBe(words)
})

test('the service itself has a name in the log', () => {
  expect(whoInWords('lifecycle')).toContain('clock')
  expect(whoInWords('ada@example.com')).toBe('ada@example.com')
})

test('beside one busy day every day with views is seen, and none without', () => {
  const counts = [0, 1, 100_000, 0, 7]
  const days = counts.map((count, index) => ({ day: `2026-11-0${index + 1}`, count }))
  const heights = [...viewsChart(days).text.matchAll(/<rect[^>]*height="([\d.]+)"/g)].map(([, height]) =>
    Number(height),
  )
  expect(heights).toHaveLength(5)
  expect([heights[0], heights[3]]).toEqual([0, 0])
  expect(Math.min(heights[1]!, heights[4]!)).toBeGreaterThanOrEqual(2)
  expect(heights[2]).toBeGreaterThan(100)
  expect(viewsChart(days).text).toContain('>100k<')
})

test('plans have prices in a currency, and the reader’s own is marked once', () => {
  const lifetimes = { anonymousLifetimeMs: 7 * 86_400_000, freeIdleLifetimeMs: 30 * 86_400_000 }
  const euros = planTable({ lifetimes, currency: 'eur', current: 'plus' }).text
  expect(euros).toContain('€12 a month, or €99 a year')
  expect(euros.match(/Your plan/g)).toHaveLength(1)
  expect(planTable({ lifetimes, currency: 'gbp' }).text).toContain('£49 a month')
  expect(planTable({ lifetimes, currency: 'gbp' }).text).not.toContain('Your plan')
})
