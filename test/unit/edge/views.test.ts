import { expect, test } from 'vitest'
import { createViews } from '../../../edge/send/views.ts'
import { createVisitors } from '../../../edge/store/visitors.ts'

const NOON = Date.UTC(2027, 0, 1, 12)
const DAY_MS = 86_400_000
const view = { siteId: 'st_1', page: '/index.html', ip: '203.0.113.7', agent: 'Mozilla/5.0' }

test('a visitor counts once per page and day, whichever worker meets them', () => {
  const [one, other, visitors] = [createViews(), createViews(), createVisitors()]
  const counted = (views: typeof one) => visitors.count(views.take())
  for (let time = 0; time < 10; time++) one.count(view, NOON)
  one.count({ ...view, page: '/about.html' }, NOON)
  one.count({ ...view, agent: 'Mozilla/5.0 (another)' }, NOON)
  expect(counted(one)).toEqual([['st_1|2027-01-01', 3]])
  other.count(view, NOON)
  expect(counted(other)).toEqual([])
  other.count(view, NOON + DAY_MS)
  expect(counted(other)).toEqual([['st_1|2027-01-02', 1]])
})

test('a loop that changes its name does not make a drop popular, and takes nothing from other drops', () => {
  const [views, visitors] = [createViews(), createVisitors()]
  for (let time = 0; time < 2000; time++) views.count({ ...view, agent: `Mozilla/5.0 (${time})` }, NOON)
  expect(visitors.count(views.take())).toEqual([['st_1|2027-01-01', 100]])
  views.count({ ...view, siteId: 'st_2' }, NOON)
  views.count({ ...view, ip: '203.0.113.8' }, NOON)
  expect(visitors.count(views.take())).toHaveLength(2)
})

test('an IPv6 network is one, whatever its address', () => {
  const [views, visitors] = [createViews(), createVisitors()]
  for (let host = 0; host < 500; host++) views.count({ ...view, ip: `2001:db8::${host.toString(16)}` }, NOON)
  expect(visitors.count(views.take())).toEqual([['st_1|2027-01-01', 1]])
})

test('what calls itself a machine is no visitor, however often it comes', () => {
  const [views, visitors] = [createViews(), createVisitors()]
  const agent = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'
  for (let time = 0; time < 3; time++) views.count({ ...view, agent }, NOON)
  expect(visitors.count(views.take())).toEqual([])
})
