/** What must be so before there is a release, and what it tells. */
import { expect, test } from 'vitest'
import {
  changelogSection,
  releaseProblems,
  releaseTag,
  type Release,
} from '../../../control/operations/release/rules.ts'

const CHANGELOG = `# Changelog

## [0.2.0] - 2027-01-31

New things.

### Operators

- More.

### [0.1.0] and before

## [0.1.0] - 2026-12-01

The first version.
`
const good: Release = {
  version: '0.2.0',
  versions: { 'cli/package.json': '0.2.0', 'server.json': '0.2.0' },
  changelog: CHANGELOG,
  uncommitted: '',
  tagged: undefined,
  head: 'a'.repeat(40),
}

test('a section of the changelog is everything up to the next version', () => {
  expect(changelogSection(CHANGELOG, '0.2.0')).toBe('New things.\n\n### Operators\n\n- More.\n\n### [0.1.0] and before')
  expect(changelogSection(CHANGELOG, '0.1.0')).toBe('The first version.')
  expect(changelogSection(CHANGELOG, '0.1')).toBeUndefined()
  expect(releaseTag('0.2.0')).toBe('v0.2.0')
})

test('what is whole can be released, also when it is tagged already', () => {
  expect(releaseProblems(good)).toEqual([])
  expect(releaseProblems({ ...good, tagged: good.head })).toEqual([])
})

test.each<[string, Partial<Release>, RegExp]>([
  ['another version of the client', { versions: { 'cli/package.json': '0.1.0' } }, /^cli\/package.json: says 0\.1\.0/],
  ['no version at all', { versions: { 'server.json': undefined } }, /^server.json: says no version/],
  ['nothing in the changelog', { changelog: '# Changelog\n' }, /write what changed under "## \[0\.2\.0\]/],
  ['an empty section', { changelog: '## [0.2.0] - 2027-01-31\n\n## [0.1.0] - 2026-12-01\n' }, /write what changed/],
  ['no day', { changelog: CHANGELOG.replace('2027-01-31', 'unreleased') }, /replace "unreleased" by the day/],
  ['no day at all', { changelog: CHANGELOG.replace(' - 2027-01-31', '') }, /replace "" by the day/],
  ['more than a day', { changelog: CHANGELOG.replace('2027-01-31', '2027-01-31 or so') }, /replace "2027-01-31 or so"/],
  ['words before the day', { changelog: CHANGELOG.replace('2027-01-31', 'on 2027-01-31') }, /replace "on 2027-01-31"/],
  ['changes that no commit has', { uncommitted: ' M README.md' }, /^git: commit/],
  ['a tag elsewhere', { tagged: 'b'.repeat(40) }, /^git: v0\.2\.0 names another commit/],
])('%s is no release', (_, change, problem) => {
  const problems = releaseProblems({ ...good, ...change })
  expect(problems).toHaveLength(1)
  expect(problems[0]).toMatch(problem)
})

test.each([
  ['10.20.30', true],
  ['0.2.0-rc.1', false],
  ['v0.2.0', false],
  ['0.2', false],
  ['.2.0', false],
  ['0..0', false],
  ['0.2.', false],
])('a version is three numbers: %s %s', (version, isOne) => {
  const changelog = CHANGELOG.replace('0.2.0', version)
  const problems = releaseProblems({ ...good, version, changelog, versions: {} })
  expect(problems).toEqual(isOne ? [] : [`package.json: "${version}" is not major.minor.patch`])
})

test('the first line may be a heading, and a heading the last line', () => {
  expect(changelogSection('## [0.2.0] - 2027-01-31\nNew things.', '0.2.0')).toBe('New things.')
  expect(changelogSection('## [0.2.0] - 2027-01-31', '0.2.0')).toBe('')
})
