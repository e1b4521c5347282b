import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { readControlConfig } from '../../../control/config.ts'
import { readEdgeConfig } from '../../../edge/config.ts'

const ROOT = new URL('../../../', import.meta.url)
const source = readFileSync(new URL('docker-compose.yml', ROOT), 'utf8')

interface Service {
  readonly command?: readonly string[]
  readonly environment: Readonly<Record<string, string>>
}

/** As compose reads it: `${NAME:-fallback}` with nothing set. */
const compose = parse(source.replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1'), { merge: true }) as {
  services: Record<string, Service>
}

test.each([
  { plane: 'control', read: readControlConfig },
  { plane: 'edge', read: readEdgeConfig },
])('the settings of $plane are ones that it reads, with values it accepts', ({ plane, read }) => {
  const { environment, command } = compose.services[plane]!
  const asked = new Set<string>()
  const spy = new Proxy({ ...environment, SECRET_KEY: 'k'.repeat(32) } as Record<string, string>, {
    get(values, name: string) {
      asked.add(name)
      return values[name]
    },
  })
  expect(() => read(spy)).not.toThrow()
  expect(Object.keys(environment).filter((name) => !asked.has(name))).toEqual([])
  expect(existsSync(new URL(command![1]!, ROOT))).toBe(true)
})

test('the image holds every folder that the planes import, and nothing that is left out of the build', () => {
  const dockerfile = readFileSync(new URL('.docker/Dockerfile', ROOT), 'utf8')
  const ignored = readFileSync(new URL('.dockerignore', ROOT), 'utf8').split('\n')
  for (const folder of ['shared', 'certs', 'edge', 'control']) {
    expect(dockerfile).toContain(`COPY ${folder}/ ${folder}/`)
    expect(ignored).not.toContain(folder)
  }
})
