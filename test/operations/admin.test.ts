import { mkdir, readdir, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { FormBrowser } from '../support/form-browser.ts'
import type { CommandResult } from '../support/operator.ts'
import { startStack, type OwnStack } from '../support/stack.ts'

const DAY_MS = 86_400_000

let stack: OwnStack
beforeAll(async () => {
  // Its own: moving the clock of the lifecycle would expire the drops of other tests.
  stack = await startStack({ database: 'shared', operator: true })
})
afterAll(() => stack?.stop())

/** `npm run admin -- …`, which costs a start each time. */
async function program<Result>(...args: string[]): Promise<Result> {
  return resultOf(await stack.admin(...args))
}

/** The same by an operator who stays, for what does not depend on the program. */
async function admin<Result>(...args: string[]): Promise<Result> {
  return resultOf(await stack.operate(...args))
}

function resultOf<Result>({ code, stdout, stderr }: CommandResult): Result {
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  // Programs may read only the last line, below what npm prints.
  expect(stdout.trim().split('\n')).toHaveLength(1)
  return JSON.parse(stdout) as Result
}

test('create-account prints the account and a token that works', async () => {
  const account = await stack.createAccount('plus', { email: 'Ann@example.test', password: 'correct horse battery' })
  expect(account).toEqual({
    email: expect.stringMatching(/^ann@example\.test$/i),
    user_id: expect.stringMatching(/^usr_/),
    org_id: expect.stringMatching(/^org_/),
    plan: 'plus',
    token: expect.stringMatching(/^dw_/),
  })
  expect((await stack.fetch('/api/v1/me', { token: account.token })).status).toBe(200)
})

test('a password comes from stdin, never from the command line, which everyone on the machine can read', async () => {
  const email = 'piped@example.test'
  const create = (input: string, ...more: string[]) =>
    stack.adminReading(input, 'create-account', '--email', email, '--verified', ...more)
  expect((await create('two\nlines of it\n', '--password-stdin')).stderr).toContain('as one line on stdin')
  expect((await create('', '--password', 'correct horse battery')).code).not.toBe(0)
  expect((await create('pässwörd of Ann\r\n', '--password-stdin')).code).toBe(0)
  const signedIn = await new FormBrowser(stack, '198.51.100.3').send('/signin', { email, password: 'pässwörd of Ann' })
  expect(signedIn.status).toBe(303)
})

test('a taken e-mail, an unknown plan, a token for an unverified account: refused in one sentence', async () => {
  await stack.createAccount('free', { email: 'taken@example.test' })
  for (const [args, message] of [
    [['--email', 'TAKEN@example.test'], /^There is an account with this e-mail already\./],
    [
      ['--email', 'new@example.test', '--plan', 'gold'],
      /^--plan must be one of free, plus, business, starter, pro\.\n$/,
    ],
    [['--email', 'new@example.test', '--token'], /^--token needs --verified/],
    [[], /^--email is missing\.\n$/],
    [['--colour', 'red'], /^Unknown option '--colour'/],
  ] as const) {
    const { code, stdout, stderr } = await stack.operate('create-account', ...args)
    expect(stderr).toMatch(message)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  }
})

test('takedown and restore show at the address when the command returns', async () => {
  const site = await stack.publish(await stack.createAccount(), '<p>doubtful</p>')
  await admin('takedown', site.slug, '--reason', 'phishing')
  expect((await stack.visit(site.slug)).status).toBe(410)
  await admin('restore', site.slug)
  expect((await stack.visit(site.slug)).status).toBe(200)
})

test('takedown of a drop that is not there fails, and the program says so in one sentence', async () => {
  const { code, stderr } = await stack.admin('takedown', 'no-such-drop', '--reason', 'phishing')
  expect(stderr).toMatch(/^There is no such drop/)
  expect(code).toBe(1)
})

test('set-plan to free pauses drops beyond the cap, and back to a paid plan resumes them', async () => {
  const account = await stack.createAccount('plus')
  const sites = await Promise.all(Array.from({ length: 5 }, (_, index) => stack.publish(account, `<p>${index}</p>`)))
  const statuses = async () =>
    (await Promise.all(sites.map(({ slug }) => stack.visit(slug))))
      .map(({ status }) => status)
      .toSorted((a, b) => a - b)

  await admin('set-plan', '--email', account.email, '--plan', 'free')
  expect(await statuses()).toEqual([200, 200, 200, 503, 503])
  await admin('set-plan', '--email', account.email, '--plan', 'plus')
  expect(await statuses()).toEqual([200, 200, 200, 200, 200])
})

test('run-lifecycle --now expires free drops as if it were then; paid ones stay', async () => {
  const free = await stack.publish(await stack.createAccount('free'), '<p>free</p>')
  const paid = await stack.publish(await stack.createAccount('plus'), '<p>paid</p>')
  const later = new Date(Date.now() + 31 * DAY_MS).toISOString()
  // Without --really it only says so.
  expect(await program('run-lifecycle', '--now', later)).toMatchObject({
    now: expect.any(String),
    would_remove: expect.any(Number),
  })
  expect((await stack.visit(free.slug)).status).toBe(200)
  const result = await program<{ now: string; expired: number; mails: number }>(
    'run-lifecycle',
    '--now',
    later,
    '--really',
  )
  // The pretended clock goes on from then.
  const passed = Date.parse(result.now) - Date.parse(later)
  expect(passed).toBeGreaterThanOrEqual(0)
  expect(passed).toBeLessThan(DAY_MS)
  expect(result.expired).toBeGreaterThanOrEqual(1)
  expect((await stack.visit(free.slug)).status).toBe(410)
  expect((await stack.visit(paid.slug)).status).toBe(200)
})

test('republish counts the routes it wrote, and everything is still served', async () => {
  const site = await stack.publish(await stack.createAccount('plus'), '<p>here</p>')
  expect((await program<{ routes: number }>('republish')).routes).toBeGreaterThanOrEqual(1)
  expect((await stack.visit(site.slug)).status).toBe(200)
})

test('certificates list is a list', async () => {
  expect(await admin('certificates', 'list')).toEqual([])
})

test('sweep removes partial files of uploads that no one knows, and none of an open one', async () => {
  const { token } = await stack.createAccount()
  const site = (await stack.fetch('/api/v1/sites', { token, json: {} })).json<{ id: string }>()
  const files = [{ path: 'index.html', sha256: 'ab'.repeat(32), size: 1000 }]
  const root = `/api/v1/sites/${site.id}/uploads`
  const { upload_id } = (await stack.fetch(root, { token, json: { files } })).json<{ upload_id: string }>()
  const part = await stack.fetch(`${root}/${upload_id}/blobs/${files[0]!.sha256}`, {
    token,
    method: 'PUT',
    body: 'a part',
  })
  expect(part.status).toBe(400)
  const folder = path.join(stack.dataDir, 'uploads')
  // Whole when it appears: the service sweeps by itself too.
  const forgotten = path.join(stack.dataDir, 'forgotten')
  await mkdir(forgotten)
  await writeFile(path.join(forgotten, 'x'), 'x')
  await rename(forgotten, path.join(folder, 'upl_forgotten'))
  expect(await admin('sweep')).toMatchObject({ blobs: 0 })
  const left = await readdir(folder)
  expect([left.includes(upload_id), left.includes('upl_forgotten')]).toEqual([true, false])
})

test('help names every command, an unknown one fails', async () => {
  const { code, stdout } = await stack.admin('help')
  expect(code).toBe(0)
  for (const name of [
    'create-account',
    'set-plan',
    'takedown',
    'restore',
    'run-lifecycle',
    'sweep',
    'republish',
    'doctor',
  ]) {
    expect(stdout).toContain(`  ${name}`)
  }
  expect(await stack.admin('explode')).toMatchObject({ code: 1, stdout: '', stderr: '"explode" is not a command.\n' })
})
