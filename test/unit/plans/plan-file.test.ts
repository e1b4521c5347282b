import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { entryOf, isUnlimited, parsePlanFile, PLAN_NAMES, type Plan } from '../../../control/ground/terms/plan-file.ts'
import {
  firstPlan,
  installTerms,
  offeredPlans,
  orUpgrade,
  plans,
  plansAsFile,
  sellsPlans,
  soldPlans,
  termsOf,
  upgradeFor,
} from '../../../control/ground/terms/plans.ts'
import { runPlansCommand } from '../../../control/operations/admin/plans-command.ts'

const FILE = path.resolve(import.meta.dirname, '../../../control/ground/terms/plans.json')
const builtIn = (): { plans: Record<string, Record<string, unknown>> } => JSON.parse(readFileSync(FILE, 'utf8'))

afterEach(() => installTerms(termsOf('table')))

describe('a file of plans', () => {
  test('the built-in table is one, and is what is printed', () => {
    const { plans: read, invalid } = parsePlanFile(readFileSync(FILE, 'utf8'))
    expect(invalid).toEqual([])
    expect(Object.keys(read)).toEqual([...PLAN_NAMES])
    expect(plansAsFile(termsOf('table'))).toEqual(builtIn())
  })

  test('is the same as YAML', () => {
    expect(parsePlanFile(stringify(builtIn()))).toEqual(parsePlanFile(JSON.stringify(builtIn())))
  })

  const withPlus = (changes: Record<string, unknown>): string => {
    const file = builtIn()
    return JSON.stringify({ plans: { ...file.plans, plus: { ...file.plans['plus'], ...changes } } })
  }

  test.each<[string, string, RegExp]>([
    ['neither YAML nor JSON', '{"plans": ', /^it is neither YAML nor JSON: /],
    ['broken YAML', 'plans:\n  free: [', /^it is neither YAML nor JSON: /],
    ['no plans', 'free: {}', /^it must have an entry "plans"/],
    ['a list', '- free', /^it must have an entry "plans"/],
    ['nothing', '', /^it must have an entry "plans"/],
    [
      'an unknown plan',
      JSON.stringify({ plans: { ...builtIn().plans, pluss: {} } }),
      /^plan "pluss" is not known; did you mean "plus"\?/,
    ],
    [
      'a plan that is missing',
      JSON.stringify({ plans: { anonymous: builtIn().plans['anonymous'] } }),
      /^plan "free" is missing/,
    ],
    [
      'a plan without entries',
      JSON.stringify({ plans: { ...builtIn().plans, plus: 3 } }),
      /^plan "plus" must hold entries/,
    ],
    [
      'an unknown entry',
      withPlus({ activ_drops: 3 }),
      /^plan "plus", entry "activ_drops" is not known; did you mean "active_drops"\?/,
    ],
    [
      'a missing entry',
      withPlus({ active_drops: undefined }),
      /^plan "plus", entry "active_drops": is missing; it must be a whole number/,
    ],
    [
      'a negative cap',
      withPlus({ active_drops: -1 }),
      /^plan "plus", entry "active_drops": must be a whole number from 1/,
    ],
    ['half a drop', withPlus({ active_drops: 1.5 }), /^plan "plus", entry "active_drops": must be a whole number/],
    [
      'a size in words',
      withPlus({ upload_mb: '100 MB' }),
      /^plan "plus", entry "upload_mb": must be a number of megabytes/,
    ],
    [
      'too many files',
      withPlus({ files_per_version: 100_001 }),
      /^plan "plus", entry "files_per_version": must be a whole number from 1 to 100000/,
    ],
    ['no real switch', withPlus({ badge: 'no' }), /^plan "plus", entry "badge": must be true or false/],
    [
      'an unknown clock',
      withPlus({ lifetime: 'forever' }),
      /^plan "plus", entry "lifetime": must be fixed, idle or permanent/,
    ],
    ['half a price', withPlus({ price: { monthly: 3 } }), /^plan "plus", entry "price.annual": is missing/],
    [
      'a fraction of a price',
      withPlus({ price: { monthly: 3.5, annual: 9 } }),
      /^plan "plus", entry "price.monthly": must be a whole number/,
    ],
    ['no label', withPlus({ label: '' }), /^plan "plus", entry "label": /],
    [
      'a price of what is not sold',
      JSON.stringify({ plans: { ...builtIn().plans, pro: { ...builtIn().plans['plus'] } } }),
      /^plan "pro", entry "price": this plan is not sold/,
    ],
  ])('%s is named by plan and entry', (_what, text, message) => {
    const { plans: read, invalid } = parsePlanFile(text)
    expect(read).toEqual({})
    expect(invalid).toHaveLength(1)
    expect(invalid[0]).toMatch(message)
  })

  test('every mistake is told at once', () => {
    expect(parsePlanFile(withPlus({ badge: 1, label: 3, upload_mb: -1 })).invalid).toHaveLength(3)
  })

  test('100,000 files per version are allowed', () => {
    expect(parsePlanFile(withPlus({ files_per_version: 100_000 })).plans.plus?.filesPerVersion).toBe(100_000)
  })
})

describe('terms', () => {
  test('the table sells what has a price', () => {
    expect(sellsPlans()).toBe(true)
    expect(firstPlan()).toBe('free')
    expect(soldPlans().map(({ name }) => name)).toEqual(['plus', 'business'])
    expect(offeredPlans().map(({ name }) => name)).toEqual(['anonymous', 'free', 'plus', 'business'])
    expect(orUpgrade()).toBe(', or upgrade')
    expect(upgradeFor(({ password }) => password)).toBe(' Upgrade to Plus or Business to use it.')
  })

  test('a file names what it sells; a plan that it leaves out keeps its caps and is sold no more', () => {
    const { anonymous, free, plus } = builtIn().plans
    const text = JSON.stringify({
      plans: { anonymous, free, plus: { ...plus, label: 'Team', active_drops: 'unlimited' } },
    })
    installTerms(termsOf('table', parsePlanFile(text).plans))
    expect(soldPlans().map(({ label }) => label)).toEqual(['Team'])
    expect(upgradeFor(({ password }) => password)).toBe(' Upgrade to Team to use it.')
    expect(isUnlimited(plans.plus.activeDrops)).toBe(true)
    expect(plans.business).toMatchObject({ activeDrops: 100, price: undefined })
  })

  test('single: one plan with the caps of Business, without prices, badge or hints', () => {
    const { business } = plans
    installTerms(termsOf('single'))
    for (const name of ['free', 'plus', 'business', 'starter', 'pro'] as const)
      expect(plans[name]).toEqual({ ...business, name, label: 'Standard', price: undefined })
    expect([firstPlan(), sellsPlans(), orUpgrade(), upgradeFor(() => true)]).toEqual(['business', false, '', ''])
    expect(plans.anonymous).toMatchObject({ badge: false, uploadBytes: 2_000_000 })
  })

  test('single takes the caps of Business from the file', () => {
    const file = builtIn()
    const text = JSON.stringify({ plans: { ...file.plans, business: { ...file.plans['business'], active_drops: 7 } } })
    installTerms(termsOf('single', parsePlanFile(text).plans))
    expect(plans.free.activeDrops).toBe(7)
  })

  test('unlimited: no caps either, in numbers that everything can carry', () => {
    installTerms(termsOf('unlimited'))
    const caps = ({ activeDrops, uploadBytes, storageBytes, versionsKept, customDomains, viewersPerDrop }: Plan) => [
      activeDrops,
      uploadBytes,
      storageBytes,
      versionsKept,
      customDomains,
      viewersPerDrop,
    ]
    for (const cap of caps(plans.free)) {
      expect(isUnlimited(cap)).toBe(true)
      expect(Number.isSafeInteger(cap)).toBe(true)
    }
    expect(entryOf(plans.free)).toMatchObject({ active_drops: 'unlimited', storage_mb: 'unlimited' })
  })
})

describe('admin plans', () => {
  const run = (args: string[], env: Record<string, string> = {}) => {
    const [out, err]: [string[], string[]] = [[], []]
    const key = { SECRET_KEY: 'a test key of at least thirty-two characters' }
    const code = runPlansCommand(args, {
      env: { ...key, ...env },
      stdout: { write: (text) => out.push(text) },
      stderr: { write: (text) => err.push(text) },
    })
    return { code, out: out.join(''), err: err.join('') }
  }

  test('show prints what is in force, as a file that can be read', () => {
    expect(JSON.parse(run(['show']).out)).toEqual(builtIn())
    expect(parsePlanFile(run(['show'], { PLANS: 'unlimited' }).out).invalid).toEqual([])
  })

  test('check takes a good file', () => {
    expect(run(['check', FILE])).toMatchObject({ code: 0, err: '' })
  })

  test.each([[['check']], [['check', '/nowhere.yaml']], [['list']], [[]]])('%j says how it is used', (args) => {
    expect(() => run(args)).toThrow(/plans show|cannot be read/)
  })
})
