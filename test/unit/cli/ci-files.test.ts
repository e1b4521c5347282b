/** The GitHub Action and the GitLab job are run here as their runners would, with a stand-in for the client. */
import { execFileSync } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'

let folder: string
let env: Record<string, string>

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-ci-'))
  // Notes its arguments one per line, and answers like the client.
  await writeFile(
    path.join(folder, 'npx'),
    `#!/bin/sh\nprintf '%s\\n' "$@" > "$ARGUMENTS"\necho https://my-site.example\n`,
  )
  await chmod(path.join(folder, 'npx'), 0o755)
  env = {
    PATH: `${folder}:${process.env['PATH']}`,
    ARGUMENTS: path.join(folder, 'arguments'),
    GITHUB_OUTPUT: path.join(folder, 'output'),
    GITHUB_STEP_SUMMARY: path.join(folder, 'summary'),
  }
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const load = async (file: string) => parse(await readFile(new URL(`../../../cli/${file}`, import.meta.url), 'utf8'))
const read = (name: string) => readFile(path.join(folder, name), 'utf8')

test('the action deploys with its inputs, reads none of them as a command, and gives the address', async () => {
  const [step] = (await load('action/action.yml')).runs.steps
  // Nothing is pasted into the script by the runner.
  expect(step.run).not.toContain('${{')
  const inputs = {
    DROPWAY_TOKEN: 'dw_x',
    DROPWAY_URL: 'https://dropway.example',
    INPUT_INCLUDE: '',
    INPUT_FOLDER: '-dist',
    INPUT_SLUG: 'my-site',
    INPUT_MESSAGE: '$(touch pwned); "quoted"',
    INPUT_SPA: 'true',
    INPUT_VERSION: '0.1.0',
  }
  execFileSync('bash', ['--norc', '-c', step.run], { cwd: folder, env: { ...env, ...inputs } })
  const args = (await read('arguments')).trimEnd().split('\n')
  expect(args).toEqual([
    '--yes',
    'dropway@0.1.0',
    'deploy',
    '--yes',
    '--slug',
    'my-site',
    '--message',
    '$(touch pwned); "quoted"',
    '--spa',
    '--',
    '-dist',
  ])
  expect(await read('output')).toBe('url=https://my-site.example\n')
  const nowhere = { ...env, ...inputs, DROPWAY_URL: '' }
  expect(() => execFileSync('bash', ['--norc', '-c', step.run], { cwd: folder, env: nowhere, stdio: 'pipe' })).toThrow(
    /input url/,
  )
})

test('the GitLab job deploys and names the address as its environment', async () => {
  const { deploy } = await load('ci/gitlab.yml')
  const script = deploy.script.join('\n')
  execFileSync('bash', ['--norc', '-ec', script], {
    cwd: folder,
    env: { ...env, DROPWAY_URL: 'https://dropway.example', DROPWAY_SLUG: 'my-site', CI_COMMIT_TITLE: 'Fix' },
  })
  expect(await read('address.env')).toBe('DROPWAY_ADDRESS=https://my-site.example\n')
  expect((await read('arguments')).split('\n')).toContain('my-site')
  const nowhere = { ...env, DROPWAY_SLUG: 'my-site', CI_COMMIT_TITLE: 'Fix' }
  expect(() => execFileSync('bash', ['--norc', '-ec', script], { cwd: folder, env: nowhere, stdio: 'pipe' })).toThrow(
    /DROPWAY_URL/,
  )
})
