/** The Helm chart, rendered by the engine that Helm is made of (render-chart.go; Debian has no Helm). */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readControlConfig } from '../../control/ground/config.ts'
import { readEdgeConfig } from '../../edge/config.ts'

const ROOT = path.join(import.meta.dirname, '../../')
const CHART = path.join(ROOT, '.docker/chart')

interface Variable {
  name: string
  value?: string
  valueFrom?: { secretKeyRef: { name: string; key: string } }
}

interface Container {
  image: string
  args: string[]
  env: Variable[]
  ports: { name: string; containerPort: number }[]
  securityContext: Record<string, unknown>
  volumeMounts: { name: string; mountPath: string }[]
  startupProbe: { httpGet: { path: string; port: string }; periodSeconds: number; failureThreshold: number }
  readinessProbe: { httpGet: { path: string; port: string } }
  livenessProbe: { httpGet: { path: string; port: string } }
}

interface Resource {
  kind: string
  metadata: { name: string }
  spec: {
    replicas?: number
    selector: Record<string, unknown>
    type?: string
    ports?: { port: number; targetPort: string }[]
    template?: {
      metadata: { labels: Record<string, string> }
      spec: {
        containers: Container[]
        volumes: { name: string }[]
        securityContext: Record<string, unknown>
        terminationGracePeriodSeconds: number
      }
    }
  }
}

interface Values {
  secretSettings: Record<string, { name: string; key: string }>
  settings: Record<string, string>
  image: { tag: string }
  control: { replicas: number }
  edge: { settings: Record<string, string>; certificateSecretName: string; drainSeconds: number }
}

function render(changes: (values: Values) => void): Resource[] {
  const values = parse(readFileSync(path.join(CHART, 'values.yaml'), 'utf8')) as Values
  Object.assign(values, { baseUrl: 'https://pages.example.test', sitesDomain: 'sites.example.test' })
  changes(values)
  const text = execFileSync('go', ['run', path.join(import.meta.dirname, 'render-chart.go'), CHART], {
    input: JSON.stringify(values),
    encoding: 'utf8',
    env: { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode' },
  })
  return parseAllDocuments(text)
    .map((document) => {
      expect(document.errors).toEqual([])
      return document.toJS() as Resource | null
    })
    .filter((resource) => resource !== null)
}

const planeOf = (resources: readonly Resource[], plane: string) =>
  resources.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === `pages-${plane}`)!.spec

/** What a container of it would see: secrets are looked up where they are referred to. */
function environmentOf(container: Container): Record<string, string> {
  const secrets: Record<string, string> = {
    SECRET_KEY: 'x'.repeat(32),
    DATABASE_URL: 'postgres://dropway:x@db/dropway',
    REDIS_URL: 'redis://redis:6379',
    BLOB_STORE: 's3://key:secret@drops?endpoint=http://s3:9000',
    url: 'smtp://mail:25',
  }
  return Object.fromEntries(
    container.env.map(({ name, value, valueFrom }) => [name, value ?? secrets[valueFrom!.secretKeyRef.key]!]),
  )
}

test('both planes: nobody, read-only, probed where they answer, with settings that they can start with', () => {
  const resources = render((values) => {
    values.secretSettings = { SMTP_URL: { name: 'mail', key: 'url' } }
    values.settings = { SERVICE_NAME: 'Acme: Pages' }
    values.edge.settings = { ACME_DIRECTORY_URL: 'https://ca.example.test/directory' }
  })
  expect(resources.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual(
    ['control', 'edge'].flatMap((plane) =>
      ['Deployment', 'Service', 'PodDisruptionBudget'].map((kind) => `${kind} pages-${plane}`),
    ),
  )
  for (const plane of ['control', 'edge']) {
    const { template, selector } = planeOf(resources, plane)
    const { containers, volumes, securityContext } = template!.spec
    const [container] = containers as [Container]
    expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 })
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(container.args).toEqual([plane])
    expect(container.image).toMatch(/^dropway:\d+\.\d+\.\d+-roles$/)
    expect(selector['matchLabels']).toEqual(template!.metadata.labels)
    expect(container.volumeMounts.map(({ name }) => name)).toEqual(volumes.map(({ name }) => name))
    const ports = new Map(container.ports.map(({ name, containerPort }) => [name, containerPort]))
    const { startupProbe, readinessProbe, livenessProbe } = container
    // Control may migrate for a day; an edge has nothing to do that takes minutes.
    expect(startupProbe.periodSeconds * startupProbe.failureThreshold).toBe(plane === 'control' ? 24 * 60 * 60 : 120)
    expect(startupProbe.httpGet).toEqual(livenessProbe.httpGet)
    expect([livenessProbe.httpGet.path, readinessProbe.httpGet.path]).toEqual(['/healthz', '/readyz'])
    expect(ports.get(readinessProbe.httpGet.port)).toBe(plane === 'control' ? 8787 : 9100)
    const service = resources.find(({ kind, metadata }) => kind === 'Service' && metadata.name === `pages-${plane}`)!
    expect(service.spec.selector).toEqual(template!.metadata.labels)
    for (const { targetPort } of service.spec.ports!) expect(ports.has(targetPort)).toBe(true)
    expect(service.spec.type).toBe(plane === 'control' ? 'ClusterIP' : 'LoadBalancer')
    // No secret stands in it.
    for (const { name, value } of container.env)
      if (/SECRET|REDIS_URL|BLOB|DATABASE/.test(name)) expect(value).toBeUndefined()
  }
  const control = environmentOf(planeOf(resources, 'control').template!.spec.containers[0]!)
  const edge = environmentOf(planeOf(resources, 'edge').template!.spec.containers[0]!)
  expect(control['SERVICE_NAME']).toBe('Acme: Pages')
  expect([control['TRUSTED_PROXIES'], edge['TRUSTED_PROXIES']]).toEqual([expect.any(String), undefined])
  expect(edge['DATABASE_URL']).toBeUndefined()
  const read = {
    control: readControlConfig({ DATA_DIR: '/tmp', ...control }),
    edge: readEdgeConfig({ DATA_DIR: '/tmp', ...edge }),
  }
  expect([read.control.baseUrl, read.edge.baseUrl]).toEqual([
    'https://pages.example.test',
    'https://pages.example.test',
  ])
})

test('what the operator says takes its place: a certificate, one of each, a longer farewell', () => {
  const resources = render((values) => {
    values.control.replicas = 1
    Object.assign(values.edge, { certificateSecretName: 'wildcard', drainSeconds: 120 })
    values.image.tag = 'mine'
  })
  expect(resources.filter(({ kind }) => kind === 'PodDisruptionBudget').map(({ metadata }) => metadata.name)).toEqual([
    'pages-edge',
  ])
  const { spec } = planeOf(resources, 'edge').template!
  expect(spec.terminationGracePeriodSeconds).toBe(130)
  expect(spec.volumes).toContainEqual({ name: 'certificate', secret: { secretName: 'wildcard' } })
  const environment = environmentOf(spec.containers[0]!)
  expect(environment).toMatchObject({ SITES_CERT_FILE: '/certificate/tls.crt', EDGE_DRAIN: '120s' })
  expect(spec.containers[0]!.image).toBe('dropway:mine')
})
