import path from 'node:path'
import { expect, test } from 'vitest'
import {
  EVERYDAY_FILES,
  filesInNeedOf,
  OPERATIONS_FILES,
  PACKAGES,
  PAGES_FILES,
  TEST_FILES,
} from '../support/programs.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

function filesThatRun(program: string): string[] {
  const packages = PACKAGES.filter((candidate) => candidate.program === program)
  return [...filesInNeedOf(packages, [...TEST_FILES, ...PAGES_FILES, ...OPERATIONS_FILES], ROOT).keys()]
}

test.each([
  ['chromium-headless-shell', 'test/pages/dashboard-pages.test.ts', 'through a support module'],
  ['pebble', 'test/operations/certificates.test.ts', 'through a support module'],
  ['redis-server', 'test/integration/redis-urls.test.ts', 'itself'],
])('%s is needed by %s, %s', (program, file) => {
  expect(filesThatRun(program)).toContain(file)
})

test.each([
  ['chromium', 'test/acceptance/api-sites.test.ts'],
  ['pebble', 'test/pages/dashboard-pages.test.ts'],
  ['redis-server', 'test/unit/layers.test.ts'],
])('a missing %s does not cost %s', (program, file) => {
  expect(filesThatRun(program)).not.toContain(file)
})

test('npm test starts no browser', () => {
  const browser = PACKAGES.filter(({ program }) => program === 'chromium-headless-shell')
  expect(browser).toHaveLength(1)
  expect([...filesInNeedOf(browser, EVERYDAY_FILES, ROOT).keys()]).toEqual([])
})

test('nothing is skipped where nothing is missing', () => {
  expect(filesInNeedOf([], TEST_FILES, ROOT)).toEqual(new Map())
})
