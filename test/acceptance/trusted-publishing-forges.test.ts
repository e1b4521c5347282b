/** The files that we give to forges, step by step as their jobs run them, with no secret configured. */
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { apiFor } from '../support/api.ts'
import { openCli, type Cli } from '../support/cli.ts'
import { startTrustedWorld, type TrustedWorld } from '../support/trusted-world.ts'

let world: TrustedWorld
let stack: TrustedWorld['stack']
let issuer: TrustedWorld['issuer']
let owner: TrustedWorld['owner']
let siteId: string
let slug: string
let trust: TrustedWorld['trust']
let claimsOf: TrustedWorld['claimsOf']
let jobClaims: TrustedWorld['jobClaims']

beforeAll(async () => {
  world = await startTrustedWorld()
  ;({ stack, issuer, owner, siteId, slug, trust, claimsOf, jobClaims } = world)
  expect((await trust('good')).status).toBe(201)
})
afterAll(() => world.stop())

let folder: string
let cli: Cli
let env: Record<string, string>

beforeAll(async () => {
  cli = await openCli()
  folder = await mkdtemp(path.join(cli.folder, 'job-'))
  // `npx --yes dropway@<version> …` finds the packed client instead of a registry's.
  await writeFile(path.join(folder, 'npx'), `#!/bin/sh\nshift 2\nexec "${cli.bin}" "$@"\n`)
  await chmod(path.join(folder, 'npx'), 0o755)
  await mkdir(path.join(folder, 'dist'))
  await writeFile(path.join(folder, 'ca.pem'), stack.ca)
  env = {
    PATH: `${folder}:${cli.path}`,
    HOME: path.join(folder, 'home'),
    CI: 'true',
    DROPWAY_URL: stack.baseUrl,
    DROPWAY_CA_FILE: path.join(folder, 'ca.pem'),
    DROPWAY_SLUG: slug,
    GITHUB_OUTPUT: path.join(folder, 'output'),
    GITHUB_STEP_SUMMARY: path.join(folder, 'summary'),
  }
})
afterAll(() => cli.remove())

const load = async (file: string) => parse(await readFile(new URL(`../../cli/${file}`, import.meta.url), 'utf8'))

async function runJob(script: string, page: string, variables: Record<string, string>): Promise<void> {
  await writeFile(path.join(folder, 'dist', 'index.html'), `<h1>${page}</h1>`)
  await promisify(execFile)('bash', ['-ec', script], { cwd: folder, env: { ...env, ...variables } })
  expect((await stack.visit(slug)).text()).toContain(`<h1>${page}</h1>`)
  const [version] = (await stack.fetch(`/api/v1/sites/${siteId}/versions`, owner)).json<object[]>()
  expect(version).toMatchObject({ source: { repository: 'octo/site', actor: 'ada' } })
}

test('the action on GitHub', async () => {
  const { runs, inputs } = await load('action/action.yml')
  expect(inputs.token.default).toBe('')
  const variables = { DROPWAY_TOKEN: '', INPUT_SLUG: slug, INPUT_FOLDER: 'dist', INPUT_MESSAGE: 'Fix', INPUT_SPA: '' }
  const job = { ...issuer.jobOf('good', jobClaims('good')), INPUT_INCLUDE: '', INPUT_VERSION: 'latest' }
  await runJob(runs.steps[0].run, 'by GitHub', { ...variables, ...job })
  expect(await readFile(path.join(folder, 'output'), 'utf8')).toContain(slug)
})

test('the job on GitLab', async () => {
  const { deploy } = await load('ci/gitlab.yml')
  expect(deploy.id_tokens.DROPWAY_ID_TOKEN.aud).toBe('$DROPWAY_URL')
  const gitlab = { provider: 'gitlab', workflow: '.gitlab-ci.yml' }
  expect((await trust('other', gitlab)).status).toBe(201)
  const { iss, aud, iat, nbf, exp, jti, sha } = claimsOf('other')
  const token = await issuer.sign({
    ...{ iss, aud, iat, nbf, exp, jti, sha },
    project_path: 'octo/site',
    project_id: '101',
    namespace_id: '7',
    ref: 'main',
    ref_type: 'branch',
    ci_config_ref_uri: 'gitlab.example/octo/site//.gitlab-ci.yml@refs/heads/main',
    environment: 'production',
    pipeline_source: 'push',
    user_login: 'ada',
  })
  await runJob(deploy.script.join('\n'), 'by GitLab', { DROPWAY_ID_TOKEN: token, CI_COMMIT_TITLE: 'Fix' })
})

test('the workflow on Forgejo', async () => {
  const workflow = await load('ci/forgejo.yml')
  expect(workflow['enable-openid-connect']).toBe(true)
  expect((await trust('other', { provider: 'forgejo', environment: undefined })).status).toBe(201)
  const step = workflow.jobs.deploy.steps.at(-1)
  expect(Object.keys(step.env)).not.toContain('DROPWAY_TOKEN')
  const job = issuer.jobOf('other', { ...jobClaims('other'), workflow_ref: undefined, workflow: 'deploy.yml' })
  await runJob(step.run, 'by Forgejo', { ...job, DROPWAY_MESSAGE: 'Fix' })
})

/** The preview files of all forges: published, then removed when the pull request is closed. */
async function runPreviewJob(
  run: string,
  folderName: string,
  job: (isClosed: boolean) => Promise<Record<string, string>>,
): Promise<void> {
  const site: { id: string; slug: string } = (await apiFor(stack, owner).create()).json()
  const provider = folderName
  expect(
    (
      await stack.fetch(`/api/v1/sites/${site.id}/publishers`, {
        token: owner.token,
        json: { provider, issuer: issuer.issuer('other'), repository: 'octo/site', pull_requests: true },
      })
    ).status,
  ).toBe(201)
  await writeFile(path.join(folder, 'dist', 'index.html'), `<title>${provider}</title>proposed`)
  const names = async (): Promise<string[]> =>
    (await stack.fetch(`/api/v1/sites/${site.id}/previews`, owner)).json<{ name: string }[]>().map(({ name }) => name)
  for (const isClosed of [false, true]) {
    const variables = { ...env, ...(await job(isClosed)), DROPWAY_SLUG: site.slug }
    await promisify(execFile)('bash', ['-ec', run], { cwd: folder, env: variables })
    expect(await names()).toEqual(isClosed ? [] : ['pr-12'])
  }
}

/** The event of a pull request from a fork, as Actions leave it in a file. */
async function eventOf(isClosed: boolean): Promise<string> {
  const file = path.join(folder, 'event.json')
  const head = { sha: '0123456789abcdef', repo: { full_name: 'stranger/site' } }
  const pull_request = { number: 12, head, base: { repo: { full_name: 'octo/site' } } }
  await writeFile(file, JSON.stringify({ action: isClosed ? 'closed' : 'opened', pull_request }))
  return file
}

test.each(['github', 'forgejo'] as const)('previews of pull requests from forks, by the file for %s', async (name) => {
  const workflow = await load(`ci/${name}-previews.yml`)
  const step = workflow.jobs.preview.steps.at(-1)
  expect(Object.keys(step.env)).not.toContain('DROPWAY_TOKEN')
  expect(workflow.permissions?.['id-token'] === 'write' || workflow['enable-openid-connect'] === true).toBe(true)
  await runPreviewJob(step.run, name, async (isClosed) => ({
    ...issuer.jobOf('other', {
      ...jobClaims('other'),
      event_name: 'pull_request',
      ref: 'refs/pull/12/merge',
      base_ref: 'main',
      environment: undefined,
    }),
    GITHUB_ACTIONS: 'true',
    ...(name === 'forgejo' ? { FORGEJO_ACTIONS: 'true' } : {}),
    GITHUB_EVENT_PATH: await eventOf(isClosed),
  }))
})

test('previews of merge requests, by the file for GitLab', async () => {
  const { preview, 'remove-preview': removal } = await load('ci/gitlab-previews.yml')
  for (const job of [preview, removal]) expect(job.id_tokens.DROPWAY_ID_TOKEN.aud).toBe('$DROPWAY_URL')
  const script = `if [ -n "$CLOSED" ]; then ${removal.script.join('\n')}\nelse ${preview.script.join('\n')}\nfi`
  await runPreviewJob(script, 'gitlab', async (isClosed) => {
    const { iss, aud, iat, nbf, exp, jti, sha } = claimsOf('other')
    return {
      GITLAB_CI: 'true',
      CI_PROJECT_ID: '101',
      CI_MERGE_REQUEST_IID: '12',
      CI_COMMIT_SHA: '0123456789abcdef',
      CLOSED: isClosed ? 'yes' : '',
      DROPWAY_ID_TOKEN: await issuer.sign({
        ...{ iss, aud, iat, nbf, exp, jti, sha },
        project_path: 'octo/site',
        project_id: '101',
        namespace_id: '7',
        ref: 'feature',
        ref_type: 'branch',
        ci_config_ref_uri: 'gitlab.example/octo/site//.gitlab-ci.yml@refs/heads/feature',
        pipeline_source: 'merge_request_event',
      }),
    }
  })
})

test('a fork whose pull requests the drop does not take succeeds, and publishes nothing', async () => {
  const claims = { ...jobClaims('good'), event_name: 'pull_request', ref: 'refs/pull/12/merge' }
  const job = { GITHUB_ACTIONS: 'true', GITHUB_EVENT_PATH: await eventOf(false), ...issuer.jobOf('good', claims) }
  const said = await cli.run(['pull-request', 'dist', '--slug', slug], { cwd: folder, env: { ...env, ...job } })
  expect([said.code, said.stderr]).toEqual([0, expect.stringContaining('Nothing is published')])
  expect((await stack.fetch(`/api/v1/sites/${siteId}/previews`, owner)).json()).toEqual([])
})

test('a workflow that the drop does not trust is told where to look', async () => {
  const job = issuer.jobOf('good', { ...jobClaims('good'), ref: 'refs/heads/dev' })
  const said = await cli.run(['deploy', 'dist', '--slug', slug, '--yes'], { cwd: folder, env: { ...env, ...job } })
  expect(said.code).toBe(3)
  expect(said.stderr).toContain('does not accept this workflow')
})
