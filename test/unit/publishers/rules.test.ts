/** Which run of which workflow a drop trusts: every claim, right and wrong. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  BUILT_IN_ISSUERS,
  issuerOf,
  judgeRun,
  publisherFields,
  REASONS,
  workflowInWords,
  workflowOfWords,
  type Claims,
  type TrustedWorkflow,
} from '../../../control/drops/publishers/rules.ts'

const trusted: TrustedWorkflow = {
  provider: 'github',
  issuer: 'https://token.actions.githubusercontent.com',
  repository: 'Octo/Site',
  workflow: 'deploy.yml',
  branch: 'main',
  environment: 'production',
  repositoryId: '101',
  ownerId: '7',
  claims: {},
  pullRequests: false,
}
const ANY = { workflow: null, branch: null, environment: null, repositoryId: null, ownerId: null }

const run: Claims = {
  repository: 'octo/site',
  repository_id: '101',
  repository_owner_id: 7,
  ref: 'refs/heads/main',
  workflow_ref: 'octo/site/.github/workflows/deploy.yml@refs/heads/main',
  environment: 'production',
  event_name: 'push',
  sha: 'ABC123abc123abc123abc123abc123abc123abcd',
  actor: 'ada',
}

const outcomeOf = (by: TrustedWorkflow, claims: Claims): string => {
  const judgement = judgeRun(by, claims, null)
  return judgement.kind === 'trusted' ? 'trusted' : judgement.reason
}

describe.each(['github', 'forgejo'] as const)('%s', (provider) => {
  const exact = { ...trusted, provider }
  test.each<[string, Claims, string, string]>([
    ['the run that is meant', {}, 'trusted', 'trusted'],
    ['in other letters', { repository: 'OCTO/site' }, 'trusted', 'trusted'],
    ['another repository', { repository: 'octo/other' }, 'repository', 'repository'],
    ['no repository', { repository: undefined }, 'repository', 'repository'],
    ['another id', { repository_id: '102' }, 'repository_id', 'trusted'],
    ['no id', { repository_id: undefined }, 'repository_id', 'repository_id'],
    ['another owner', { repository_owner_id: '8' }, 'owner_id', 'trusted'],
    ['no owner', { repository_owner_id: '' }, 'owner_id', 'owner_id'],
    ['a pull request', { event_name: 'pull_request' }, 'fork', 'fork'],
    ['a pull request in the context of its target', { event_name: 'pull_request_target' }, 'fork', 'fork'],
    ['the ref of a pull request', { ref: 'refs/pull/1/merge' }, 'fork', 'fork'],
    ['another branch', { ref: 'refs/heads/dev' }, 'ref', 'trusted'],
    ['a tag', { ref: 'refs/tags/v1' }, 'ref', 'trusted'],
    ['no ref', { ref: undefined }, 'ref', 'ref'],
    ['an empty branch', { ref: 'refs/heads/' }, 'ref', 'ref'],
    ['a ref that only holds one', { ref: 'x/refs/heads/main' }, 'ref', 'ref'],
    ['another workflow', { workflow_ref: 'octo/site/x/other.yml@refs/heads/main' }, 'workflow', 'trusted'],
    ['its name alone', { workflow_ref: undefined, workflow: 'deploy.yml' }, 'trusted', 'trusted'],
    ['another name alone', { workflow_ref: undefined, workflow: 'Deploy' }, 'workflow', 'trusted'],
    ['another environment', { environment: 'staging' }, 'environment', 'trusted'],
    ['no environment', { environment: undefined }, 'environment', 'trusted'],
  ])('%s', (_, change, byAll, byRepository) => {
    expect(outcomeOf(exact, { ...run, ...change })).toBe(byAll)
    expect(outcomeOf({ ...exact, ...ANY }, { ...run, ...change })).toBe(byRepository)
  })

  test('says what it was, and what to pin', () => {
    expect(judgeRun(exact, run, null)).toEqual({
      kind: 'trusted',
      ids: { repositoryId: '101', ownerId: '7' },
      run: {
        provider,
        issuer: exact.issuer,
        repository: 'octo/site',
        workflow: 'deploy.yml',
        commit: 'abc123abc123abc123abc123abc123abc123abcd',
        actor: 'ada',
      },
      preview: null,
    })
  })
})

describe('gitlab', () => {
  const exact: TrustedWorkflow = { ...trusted, provider: 'gitlab', workflow: '.gitlab-ci.yml' }
  const said: Claims = {
    project_path: 'octo/site',
    project_id: '101',
    namespace_id: '7',
    ref: 'main',
    ref_type: 'branch',
    ci_config_ref_uri: 'gitlab.com/octo/site//.gitlab-ci.yml@refs/heads/main',
    environment: 'production',
    pipeline_source: 'push',
    sha: 'abc1234',
    user_login: 'ada',
  }
  test.each<[string, Claims, string, string]>([
    ['the run that is meant', {}, 'trusted', 'trusted'],
    ['its branch as a ref', { ref: 'refs/heads/main' }, 'trusted', 'trusted'],
    ['another branch', { ref: 'dev' }, 'ref', 'trusted'],
    ['a branch whose name ends like a ref', { ref: 'x/refs/' }, 'ref', 'trusted'],
    ['a tag of that name', { ref_type: 'tag' }, 'ref', 'trusted'],
    ['another environment', { environment: 'staging' }, 'environment', 'trusted'],
    ['another file', { ci_config_ref_uri: 'gitlab.com/octo/site//x.yml@refs/heads/main' }, 'workflow', 'trusted'],
    ['a merge request', { pipeline_source: 'merge_request_event' }, 'fork', 'fork'],
    ['one from elsewhere', { pipeline_source: 'external_pull_request_event' }, 'fork', 'fork'],
    ['the ref of one', { ref: 'refs/merge-requests/9/head' }, 'fork', 'fork'],
  ])('%s', (_, change, byAll, byRepository) => {
    expect(outcomeOf(exact, { ...said, ...change })).toBe(byAll)
    expect(outcomeOf({ ...exact, ...ANY }, { ...said, ...change })).toBe(byRepository)
  })

  test('says what it was', () => {
    const shown = { repository: 'octo/site', workflow: '.gitlab-ci.yml', commit: 'abc1234', actor: 'ada' }
    expect(judgeRun(exact, said, null)).toMatchObject({ run: shown })
  })
})

describe('oidc', () => {
  const oidc: TrustedWorkflow = {
    ...trusted,
    ...ANY,
    provider: 'oidc',
    repository: 'job:site',
    claims: { team: 'web' },
  }
  const said: Claims = {
    sub: 'job:site',
    team: 'web',
    workflow: 'a/deploy.yml',
    ref: 'main',
    environment: 'production',
  }
  test.each<[string, Partial<TrustedWorkflow>, Claims, string]>([
    ['subject and claims', {}, {}, 'trusted'],
    ['another subject', {}, { sub: 'job:other' }, 'subject'],
    ['no subject', {}, { sub: undefined }, 'subject'],
    ['the subject among the claims', { claims: { sub: 'x' } }, { sub: 'x' }, 'trusted'],
    ['the subject among the claims, and another', { claims: { sub: 'x' } }, {}, 'subject'],
    ['another claim', {}, { team: 'ops' }, 'claims'],
    ['a claim that is no text', {}, { team: ['web'] }, 'claims'],
    ['its environment', { environment: 'production' }, {}, 'trusted'],
    ['another environment', { environment: 'staging' }, {}, 'environment'],
    ['its workflow', { workflow: 'deploy.yml' }, {}, 'trusted'],
    ['another workflow', { workflow: 'other.yml' }, {}, 'workflow'],
    ['its branch', { branch: 'main' }, {}, 'trusted'],
    ['its branch as a ref', { branch: 'main' }, { ref: 'refs/heads/main' }, 'trusted'],
    ['another branch', { branch: 'dev' }, {}, 'ref'],
  ])('%s', (_, by, change, expected) => expect(outcomeOf({ ...oidc, ...by }, { ...said, ...change })).toBe(expected))

  test('pins nothing, and names the subject', () => {
    expect(judgeRun(oidc, { ...said, sha: 'abc1234', actor: 'ada' }, null)).toMatchObject({
      ids: null,
      run: { repository: 'job:site', workflow: 'deploy.yml', commit: 'abc1234', actor: 'ada' },
    })
  })
})

test.each([
  ['a commit of six digits', 'abc123', ''],
  ['one of seven', 'abc1234', 'abc1234'],
  ['one of 64', 'a'.repeat(64), 'a'.repeat(64)],
  ['one of 65', 'a'.repeat(65), ''],
  ['a text around one', 'x abc1234', ''],
  ['a text behind one', 'abc1234 x', ''],
])('%s', (_, sha, commit) => expect(judgeRun(trusted, { ...run, sha }, null)).toMatchObject({ run: { commit } }))

test('every reason has its place', () => {
  expect(new Set(REASONS).size).toBe(REASONS.length)
  expect(REASONS.indexOf('repository')).toBeLessThan(REASONS.indexOf('ref'))
})

test.each([
  ['github', undefined, BUILT_IN_ISSUERS.github],
  ['github', BUILT_IN_ISSUERS.github, BUILT_IN_ISSUERS.github],
  ['github', BUILT_IN_ISSUERS.gitlab, undefined],
  ['github', 'https://ours.example', 'https://ours.example'],
  ['github', 'https://ours.example/', undefined],
  ['oidc', undefined, undefined],
  ['oidc', 'https://ours.example', 'https://ours.example'],
  ['oidc', '', undefined],
] as const)('the issuer of %s with %j is %j', (provider, issuer, expected) =>
  expect(issuerOf({ provider, issuer }, ['https://ours.example'])).toBe(expected),
)

test('the forges that every installation trusts', () => {
  expect(BUILT_IN_ISSUERS).toEqual({
    github: 'https://token.actions.githubusercontent.com',
    gitlab: 'https://gitlab.com',
    forgejo: 'https://codeberg.org/api/actions',
  })
})

const fields = z.object(publisherFields)
test.each([
  ['a forge alone', {}, true],
  ['Forgejo', { provider: 'forgejo' }, true],
  ['any OpenID issuer', { provider: 'oidc' }, true],
  ['another forge', { provider: 'svn' }, false],
  ['no forge', { provider: '' }, false],
  ['a workflow of one letter', { workflow: 'x.yml' }, true],
  ['an id of one digit', { repository_id: '7' }, true],
  ['a workflow', { workflow: 'deploy.yml' }, true],
  ['a workflow in the other spelling', { workflow: 'deploy.yaml' }, true],
  ['a path', { workflow: 'x/deploy.yml' }, false],
  ['another file', { workflow: 'deploy.yml.sh' }, false],
  ['no name at all', { workflow: '.yml' }, false],
  ['a long name', { workflow: `${'x'.repeat(100)}.yml` }, true],
  ['a longer one', { workflow: `${'x'.repeat(101)}.yml` }, false],
  ['an id as text', { repository_id: '12' }, true],
  ['an id as a number', { owner_id: 12 }, true],
  ['an id that is none', { repository_id: '12a' }, false],
  ['a long id', { repository_id: '1'.repeat(20) }, true],
  ['a longer one', { repository_id: '1'.repeat(21) }, false],
  ['a negative one', { repository_id: -1 }, false],
  ['zero', { repository_id: 0 }, true],
  ['an empty branch', { branch: ' ' }, false],
  ['a branch of one letter', { branch: 'x' }, true],
  ['a long branch', { branch: 'x'.repeat(200) }, true],
  ['a longer branch', { branch: 'x'.repeat(201) }, false],
  ['a long issuer', { issuer: 'x'.repeat(300) }, true],
  ['a longer issuer', { issuer: 'x'.repeat(301) }, false],
  ['claims', { claims: { a: 'b' } }, true],
  ['a claim without a name', { claims: { '': 'b' } }, false],
  ['a claim with a long name', { claims: { ['x'.repeat(100)]: 'b' } }, true],
  ['a claim with a longer name', { claims: { ['x'.repeat(101)]: 'b' } }, false],
  ['a claim with a long value', { claims: { a: 'x'.repeat(500) } }, true],
  ['a claim with a longer value', { claims: { a: 'x'.repeat(501) } }, false],
  ['ten claims', { claims: Object.fromEntries([...'abcdefghij'].map((name) => [name, ''])) }, true],
  ['eleven claims', { claims: Object.fromEntries([...'abcdefghijk'].map((name) => [name, ''])) }, false],
])('%s is taken or not', (_, change, isTaken) =>
  expect(fields.safeParse({ provider: 'github', ...change }).success).toBe(isTaken),
)

describe('a pull request of a repository whose pull requests may publish to previews', () => {
  const open = { ...trusted, environment: null, pullRequests: true }
  const proposal = { ...run, event_name: 'pull_request', ref: 'refs/pull/12/merge', base_ref: 'main' }
  const ofGitlab: Claims = {
    project_path: 'octo/site',
    project_id: '101',
    namespace_id: '7',
    ref: 'feature',
    ref_type: 'branch',
    ci_config_ref_uri: 'gitlab.example/octo/site//deploy.yml@refs/heads/feature',
    pipeline_source: 'merge_request_event',
  }
  const inTarget = { event_name: 'pull_request_target', ref: 'refs/heads/main' }
  test.each<[string, Partial<TrustedWorkflow>, Claims, string | null, string]>([
    ['its own preview, by the number', {}, {}, null, 'pr-12'],
    ['its own preview, which it asks for', {}, {}, 'pr-12', 'pr-12'],
    ['the preview of another', {}, {}, 'pr-1', 'preview'],
    ['a preview of another name', {}, {}, 'staging', 'preview'],
    ['the head instead of the merge', {}, { ref: 'refs/pull/12/head' }, null, 'pr-12'],
    ['a number of one digit', {}, { ref: 'refs/pull/7/merge' }, null, 'pr-7'],
    ['a number of ten', {}, { ref: 'refs/pull/1234567890/merge' }, null, 'pr-1234567890'],
    ['a number without an end', {}, { ref: `refs/pull/${'1'.repeat(11)}/merge` }, null, 'preview'],
    ['a ref that only holds one', {}, { ref: 'x/refs/pull/12/merge' }, null, 'preview'],
    ['for another branch', {}, { base_ref: 'dev' }, null, 'ref'],
    ['for any branch', { branch: null }, { base_ref: 'dev' }, null, 'pr-12'],
    [
      'of another workflow',
      {},
      { workflow_ref: 'octo/site/.github/workflows/x.yml@refs/pull/12/merge' },
      null,
      'workflow',
    ],
    ['of a copy of the repository', {}, { repository_id: '102' }, null, 'repository_id'],
    ['in the context of its target, with its number', {}, inTarget, 'pr-3', 'pr-3'],
    ['in the context of its target, without', {}, inTarget, null, 'preview'],
    ['in the context of its target, as something else', {}, inTarget, 'pr-x', 'preview'],
    ['in the context of its target, with a number of ten digits', {}, inTarget, 'pr-1234567890', 'pr-1234567890'],
    ['in the context of its target, with a longer one', {}, inTarget, 'pr-12345678901', 'preview'],
    ['in the context of its target, with more before it', {}, inTarget, 'x-pr-3', 'preview'],
    ['in the context of its target, with more behind it', {}, inTarget, 'pr-3x', 'preview'],
    ['where they are not let in', { pullRequests: false }, {}, 'pr-12', 'fork'],
    ['at GitLab, with its number', { provider: 'gitlab' }, ofGitlab, 'pr-7', 'pr-7'],
    ['at GitLab, without', { provider: 'gitlab' }, ofGitlab, null, 'preview'],
    [
      'at GitLab, by its ref',
      { provider: 'gitlab' },
      { ...ofGitlab, ref: 'refs/merge-requests/9/head' },
      'pr-7',
      'preview',
    ],
    ...(
      [
        ['of one digit', '9', 'pr-9'],
        ['of ten digits', '1234567890', 'pr-1234567890'],
        ['without an end', '12345678901', 'preview'],
      ] as const
    ).map(([what, number, expected]): [string, Partial<TrustedWorkflow>, Claims, string | null, string] => [
      `at GitLab, by a number ${what}`,
      { provider: 'gitlab' },
      { ...ofGitlab, ref: `refs/merge-requests/${number}/head` },
      null,
      expected,
    ]),
    [
      'at GitLab, by a ref that only holds one',
      { provider: 'gitlab' },
      { ...ofGitlab, ref: 'x/refs/merge-requests/9/head' },
      null,
      'preview',
    ],
    [
      'at GitLab, of a fork’s own project',
      { provider: 'gitlab' },
      { ...ofGitlab, project_path: 'eve/site' },
      'pr-7',
      'repository',
    ],
  ])('%s', (_, by, change, asked, expected) => {
    const claims = by.provider === 'gitlab' ? change : { ...proposal, ...change }
    const judgement = judgeRun({ ...open, ...by }, claims, asked)
    expect(judgement.kind === 'trusted' ? judgement.preview : judgement.reason).toBe(expected)
  })

  test('a run of the branch itself is for the drop, or for the preview that it asks for', () => {
    const ofBranch = { ...open, environment: 'production' }
    expect(judgeRun(ofBranch, run, null)).toMatchObject({ kind: 'trusted', preview: null })
    expect(judgeRun(ofBranch, run, 'staging')).toMatchObject({ kind: 'trusted', preview: 'staging' })
  })
})

test.each([
  ['github:octo/site', { provider: 'github', repository: 'octo/site', branch: null }],
  [' gitlab:a/b/c@main ', { provider: 'gitlab', repository: 'a/b/c', branch: 'main' }],
  ['svn:octo/site', undefined],
  ['octo/site', undefined],
  ['github:', undefined],
  ['x github:octo/site', undefined],
  ['github:a@b', { provider: 'github', repository: 'a', branch: 'b' }],
  ['github:octo/site@main x', undefined],
  [`github:${'a'.repeat(200)}`, { provider: 'github', repository: 'a'.repeat(200), branch: null }],
  [`github:${'a'.repeat(201)}`, undefined],
  [`github:a@${'b'.repeat(200)}`, { provider: 'github', repository: 'a', branch: 'b'.repeat(200) }],
  [`github:a@${'b'.repeat(201)}`, undefined],
])('the workflow %j in one line', (text, workflow) => {
  expect(workflowOfWords(text)).toEqual(workflow)
  if (workflow) expect(workflowInWords(workflowOfWords(text)!)).toBe(text.trim())
})
