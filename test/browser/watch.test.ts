/** `dropway deploy --watch`: a file is saved, and the preview that a member has open shows it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { openCli, type Cli } from '../support/cli.ts'
import { beSignedIn, newEmail, openVisitor, PASSWORD } from '../support/dashboard-visitor.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let cli: Cli
let browser: Browser

beforeAll(async () => {
  stack = await sharedStack()
  ;[cli, browser] = await Promise.all([openCli(), launchBrowser()])
})
afterAll(async () => {
  await browser.close()
  await cli.remove()
})

test('a saved file is in the open preview; what is live stays as it was', async () => {
  const owner = await stack.createAccount('plus', { email: newEmail(), password: PASSWORD })
  const slug = `watched-${process.pid}`
  const site = (await stack.fetch('/api/v1/sites', { token: owner.token, json: { slug } })).json<{ id: string }>()
  const folder = path.join(cli.folder, 'site')
  const save = (text: string): Promise<void> => writeFile(path.join(folder, 'index.html'), `<h1>${text}</h1>`)
  await mkdir(folder, { recursive: true })
  await save('one')
  const caFile = path.join(cli.folder, 'ca.pem')
  await writeFile(caFile, stack.ca)
  const env = {
    PATH: cli.path,
    HOME: cli.folder,
    DROPWAY_TOKEN: owner.token,
    DROPWAY_URL: stack.baseUrl,
    DROPWAY_CA_FILE: caFile,
  }
  const args = ['deploy', folder, '--slug', slug, '--preview', 'draft', '--watch', '--yes']
  const child = spawn(cli.bin, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  // In either order: the two streams come by ways of their own.
  for (const words of ['Watching', `/review/${slug}?preview=draft`]) await expect.poll(() => said).toContain(words)

  const visitor = await openVisitor(browser, stack)
  await beSignedIn(visitor, stack, owner.email)
  const host = `draft--${slug}.${stack.sitesDomain}:${stack.httpsPort}`
  await visitor.page.goto(`${stack.baseUrl}/sites/${site.id}/pass?host=${host}&next=/`)
  await visitor.page.getByRole('heading', { name: 'one' }).waitFor()
  await save('two')
  await visitor.page.getByRole('heading', { name: 'two' }).waitFor()
  expect((await stack.visit(slug)).status).toBe(404)
  child.kill('SIGINT')
  expect((await exited)[0]).toBe(130)
  await visitor.close()
})
