/** What can be wrong about the files of containers without starting one; `npm run test:image` starts them. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { readControlConfig } from '../../../control/ground/config.ts'
import { BUILT_FOLDER, builtName, SEALED_BUILD } from '../../../shared/running/built.ts'
import { allocatorSettings } from '../../../shared/running/memory.ts'
import { readEdgeConfig } from '../../../edge/config.ts'
import { readCompose } from '../../support/compose.ts'

const ROOT = new URL('../../../', import.meta.url)
const read = (file: string): string => readFileSync(new URL(file, ROOT), 'utf8')

/** The part of the compose specification that we use, and nothing else: a mistyped key is refused. */
const service = z.strictObject({
  image: z.string().regex(/^[a-z0-9./-]+(:[\w.-]+)?$/),
  build: z.strictObject({ context: z.literal('.'), dockerfile: z.string(), target: z.literal('roles') }).optional(),
  command: z.array(z.string()).optional(),
  entrypoint: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()).optional(),
  volumes: z.array(z.string().regex(/^[^:]+:\/[^:]*(:ro)?$/)).optional(),
  ports: z.array(z.string().regex(/^(127\.0\.0\.1:)?\d+:\d+$/)).optional(),
  depends_on: z
    .record(z.string(), z.strictObject({ condition: z.enum(['service_healthy', 'service_completed_successfully']) }))
    .optional(),
  healthcheck: z
    .strictObject({
      test: z.tuple([z.literal('CMD')], z.string()),
      interval: z.string().regex(/^\d+s$/),
      timeout: z
        .string()
        .regex(/^\d+s$/)
        .optional(),
      retries: z.int().positive(),
      start_period: z
        .string()
        .regex(/^\d+[sh]$/)
        .optional(),
    })
    .optional(),
  restart: z.literal('unless-stopped').optional(),
  profiles: z.array(z.string()).optional(),
  read_only: z.boolean().optional(),
  tmpfs: z.array(z.string()).optional(),
  cap_drop: z.array(z.string()).optional(),
  security_opt: z.array(z.string()).optional(),
  stop_grace_period: z.string().optional(),
})
const schema = z.strictObject({
  name: z.string(),
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.null()),
})

/** As compose reads it with nothing set. */
const compose = schema.parse(readCompose())
const services = new Map(Object.entries(compose.services))

/** What the service `secrets` makes, made here. */
const secretsFolder = mkdtempSync(path.join(os.tmpdir(), 'dropway-secrets-'))
makeSecrets(secretsFolder)
afterAll(() => rmSync(secretsFolder, { recursive: true, force: true }))

function makeSecrets(folder: string, environment: Record<string, string> = {}): Record<string, string> {
  const script = fileURLToPath(new URL('.docker/make-secrets.sh', ROOT))
  execFileSync('sh', [script], { env: { PATH: process.env['PATH']!, SECRETS_DIR: folder, ...environment } })
  return Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(path.join(folder, name), 'utf8')]))
}

/** As a container sees them, with the volume `secrets` where it is here. */
function settingsOf(name: string): Record<string, string> {
  const { environment = {} } = services.get(name)!
  const here = Object.entries(environment).map(([key, value]) => [key, value.replace('/secrets', secretsFolder)])
  return Object.fromEntries(here) as Record<string, string>
}

const PLANES = [
  { plane: 'control-1', readConfig: readControlConfig },
  { plane: 'control-2', readConfig: readControlConfig },
  { plane: 'edge-1', readConfig: readEdgeConfig },
  { plane: 'edge-2', readConfig: readEdgeConfig },
]

test.each(PLANES)('the settings of $plane are ones that it reads, with values it accepts', ({ plane, readConfig }) => {
  const { command, healthcheck } = services.get(plane)!
  const environment = settingsOf(plane)
  const asked = new Set<string>()
  const spy = new Proxy({ ...environment, SECRET_KEY: 'k'.repeat(32) } as Record<string, string>, {
    get(values, name: string) {
      asked.add(name)
      return values[name]
    },
  })
  expect(() => readConfig(spy)).not.toThrow()
  expect(Object.keys(environment).filter((name) => !asked.has(name))).toEqual([])
  // The image knows what is asked of it.
  const [role] = command!
  const program = `${role}/main.ts`
  expect(read('.docker/dropway-image')).toContain(
    `\n${role}) exec node /dropway/${BUILT_FOLDER}/${SEALED_BUILD}/${builtName(program)} `,
  )
  expect(read('control/operations/building/build.ts')).toContain(`'${program}'`)
  expect(existsSync(new URL(program, ROOT))).toBe(true)
  expect(healthcheck!.test).toEqual(['CMD', 'dropway-image', 'healthy'])
})

test.each(PLANES)('$plane runs without rights that it does not need, and is watched', ({ plane }) => {
  const { read_only, cap_drop, security_opt, healthcheck, volumes, restart } = services.get(plane)!
  expect({ read_only, cap_drop, security_opt }).toEqual({
    read_only: true,
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
  })
  expect(healthcheck).toBeDefined()
  expect(restart).toBe('unless-stopped')
  // What only this one may write is its own: two edges with one replica would overwrite each other.
  expect(volumes).toContain(`${plane}:/local`)
})

test('a control that migrates for hours is not called unhealthy, by compose or by the image; an edge soon is', () => {
  for (const { plane } of PLANES)
    expect(services.get(plane)!.healthcheck!.start_period, plane).toBe(plane.startsWith('control') ? '24h' : '60s')
  expect(read('Containerfile')).toMatch(/^HEALTHCHECK .*--start-period=24h /m)
})

test('what is depended on exists and can be healthy; what is mounted exists', () => {
  for (const { depends_on = {}, volumes = [] } of services.values()) {
    for (const [name, { condition }] of Object.entries(depends_on)) {
      expect(services.has(name)).toBe(true)
      if (condition === 'service_healthy') expect(services.get(name)!.healthcheck).toBeDefined()
    }
    for (const source of volumes.map((volume) => volume.split(':')[0]!)) {
      expect(source.startsWith('.') ? existsSync(new URL(source, ROOT)) : Object.hasOwn(compose.volumes, source)).toBe(
        true,
      )
    }
  }
})

test('no password is written down: each installation makes its own, once, and each file is its user’s alone', () => {
  expect(read('docker-compose.yml')).not.toMatch(/(?:PASSWORD|SECRET)\w*: \$\{\w+:-[^}]/)
  for (const [name, { environment = {} }] of services)
    for (const [key, value] of Object.entries(environment))
      if (/PASSWORD|SECRET|_KEY/.test(key)) expect(['', ...secretPaths(value)], `${key} of ${name}`).toContain(value)
  const made = makeSecrets(secretsFolder)
  expect(makeSecrets(secretsFolder)).toEqual(made)
  expect(made['postgres-password']).toMatch(/^[0-9a-f]{48}$/)
  expect(made['s3-password']).not.toBe(made['postgres-password'])
  expect(made['database-url']).toContain(`:${made['postgres-password']}@postgres:`)
  expect(made['blob-store']).toContain(`:${made['s3-password']}@drops`)
  for (const name of Object.keys(made)) expect(statSync(path.join(secretsFolder, name)).mode & 0o777, name).toBe(0o600)
  const other = mkdtempSync(path.join(os.tmpdir(), 'dropway-secrets-'))
  const chosen = makeSecrets(other, { POSTGRES_PASSWORD: 'of-an-old-volume' })
  expect(chosen['database-url']).toContain(':of-an-old-volume@')
  expect(chosen['s3-password']).not.toBe(made['s3-password'])
  rmSync(other, { recursive: true })
})

const secretPaths = (value: string): string[] => (/^\/secrets\/[a-z0-9-]+$/.test(value) ? [value] : [])

test('hosts named in settings are services', () => {
  for (const { plane } of PLANES) {
    const settings = Object.values(settingsOf(plane))
    const files = settings.filter((value) => value.startsWith(`${secretsFolder}/`))
    const values = [...settings, ...files.map((file) => readFileSync(file, 'utf8'))]
    const hosts = values.flatMap((value) =>
      [...value.matchAll(/(?:http|redis|postgres|smtp):\/\/(?:[^@/,]*@)?([a-z0-9-]+):\d+/g)].map((match) => match[1]!),
    )
    expect(hosts.filter((host) => !services.has(host))).toEqual([])
    expect(hosts.length).toBeGreaterThan(1)
  }
})

test('Prometheus asks every plane; the dashboard and the alerts name figures that the planes have', () => {
  const { scrape_configs: jobs } = parse(read('.docker/prometheus.yml')) as {
    scrape_configs: { static_configs: { targets: string[] }[] }[]
  }
  const targets = jobs.flatMap((job) => job.static_configs.flatMap((config) => config.targets))
  expect(targets).toEqual(['edge-1:9100', 'edge-2:9100', 'control-1:8787', 'control-2:8787'])
  const figures = [
    'edge/processes/status/figures.ts',
    'control/composition/figures.ts',
    ...readdirSync(new URL('control/ground/watching/', ROOT)).map((file) => `control/ground/watching/${file}`),
  ].map(read)
  const dashboards = ['dropway', 'control'].map(
    (name) => JSON.parse(read(`.docker/grafana/${name}.json`)) as { panels: { targets: { expr: string }[] }[] },
  )
  const { groups } = parse(read('.docker/alerts.yml')) as { groups: { rules: { expr: string }[] }[] }
  const expressions = [
    ...dashboards.flatMap(({ panels }) => panels.flatMap(({ targets: shown }) => shown.map(({ expr }) => expr))),
    ...groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
  ]
  const named = new Set(expressions.flatMap((expr) => expr.match(/dropway_\w+/g) ?? []))
  expect(named.size).toBeGreaterThan(30)
  for (const name of named) {
    const written = name.replace(/^dropway_(?:edge|certificates)_|_bucket$/g, '')
    expect(
      figures.some((source) => source.includes(`'${written}'`) || source.includes(`_${written}'`)),
      name,
    ).toBe(true)
  }
})

test('the image holds every folder that the planes import, nothing that is left out of the build, and no root', () => {
  const containerfile = read('Containerfile')
  const ignored = read('.dockerignore').split('\n')
  for (const folder of ['shared', 'certs', 'edge', 'control']) {
    expect(containerfile).toContain(`COPY ${folder}/ ${folder}/`)
    expect(ignored).not.toContain(folder)
  }
  for (const [, source] of containerfile.matchAll(/^COPY (\.docker\/\S+)/gm))
    expect(existsSync(new URL(source!, ROOT)), source).toBe(true)
  expect(containerfile.match(/^FROM .*/gm)).toEqual([
    'FROM ${BUILDER} AS system',
    'FROM ${BUILDER} AS modules',
    'FROM ${BUILDER} AS built',
    'FROM scratch AS roles',
    'FROM roles',
  ])
  expect(containerfile).toMatch(/^USER 1000:1000$/m)
  // An init process comes first: a plane that hangs kills itself, which no process with number 1 can do.
  expect(containerfile).toMatch(/^ENTRYPOINT \["tini", "--", "dropway-image"\]$/m)
})

test('the image tells the C library of a control what a supervisor does', () => {
  const script = read('.docker/dropway-image')
  for (const [name, value] of Object.entries(allocatorSettings('control')))
    expect(script).toContain(`  export ${name}="\${${name}:-${value}}"\n`)
})
