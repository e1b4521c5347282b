/** The client as it would be published: packed, installed into an empty folder, run by each Node that it supports. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openCli, type Cli } from '../support/cli.ts'
import { installFromNpm } from '../support/registries.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let folder: string
let cli: Cli
let stack: Stack
let owner: Account

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-nodes-'))
  ;[cli, stack] = await Promise.all([openCli(), sharedStack()])
  await writeFile(path.join(cli.folder, 'ca.pem'), stack.ca)
  owner = await stack.createAccount('plus')
})
afterAll(async () => {
  await cli.remove()
  await rm(folder, { recursive: true, force: true })
})

/** The folder with the `node` of that version. */
async function installNode(major: number): Promise<string> {
  const prefix = path.join(folder, `node-${major}`)
  await mkdir(prefix)
  const name = `node-linux-${process.arch}`
  await installFromNpm(prefix, [`${name}@${major}`], ['--prefix', prefix, '--ignore-scripts'])
  return path.join(prefix, 'node_modules', name, 'bin')
}

test.each([20, 22, 24, 26])('Node %d installs nothing but the client, and it deploys and compares', async (major) => {
  const bin = await installNode(major)
  const run = (args: string[], cwd = cli.folder) =>
    cli.run(args, {
      cwd,
      env: {
        PATH: `${bin}:/usr/bin:/bin`,
        HOME: path.join(folder, `home-${major}`),
        DROPWAY_URL: stack.baseUrl,
        DROPWAY_CA_FILE: path.join(cli.folder, 'ca.pem'),
        DROPWAY_TOKEN: owner.token,
      },
    })
  const { stdout } = await promisify(execFile)(path.join(bin, 'node'), ['--version'])
  expect(stdout).toMatch(new RegExp(`^v${major}\\.`))
  expect((await run(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  const site = path.join(folder, `site-${major}`)
  await mkdir(site)
  await writeFile(path.join(site, 'index.html'), `<h1>From Node ${major}</h1>`)
  const deployed = await run(['deploy'], site)
  expect([deployed.code, deployed.stderr]).toEqual([0, expect.stringContaining('Version 1 is live')])
  expect(deployed.stderr).not.toMatch(/warning/i)
  const slug = new URL(deployed.lines.at(-1)!).hostname.split('.')[0]!
  expect((await stack.visit(slug)).text()).toContain(`From Node ${major}`)
  expect((await run(['diff', '--json'], site)).json()).toMatchObject({ unchanged: true })
  expect((await run(['delete', '--yes'], site)).code).toBe(0)
})

test('the package is one file of code with its types and its README', async () => {
  const installed = path.join(path.dirname(cli.bin), '..', 'dropway')
  expect((await readdir(installed, { recursive: true })).toSorted()).toEqual([
    'README.md',
    'dist',
    'dist/dropway.d.ts',
    'dist/dropway.js',
    'package.json',
  ])
  const manifest = JSON.parse(await readFile(path.join(installed, 'package.json'), 'utf8'))
  expect(manifest.dependencies).toBeUndefined()
  const code = await readFile(path.join(installed, 'dist', 'dropway.js'), 'utf8')
  const foreign = [...code.matchAll(/^import .*? from "([^"]+)";$/gm)].map(([, name]) => name!)
  expect(foreign.filter((name) => !name.startsWith('node:'))).toEqual([])
})
