/** `node:http` is asked for in one place, which does not load Node's `fetch` along with it. */
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const ROOT = path.resolve(import.meta.dirname, '../../..')
const MODULE = path.join(ROOT, 'shared/http/node-http.ts')

/** Prints how many of Node's own modules were loaded that belong to its `fetch`. */
const COUNT = `console.log(process.moduleLoadList.filter((name) => name.includes('undici')).length)`

function loadedBy(code: string): number {
  const args = ['--input-type=module', '--eval', `${code}; ${COUNT}`]
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8', env: {} }))
}

test('what asks for it loads no fetch, which an import would', () => {
  expect(loadedBy(`const { nodeHttp } = await import(${JSON.stringify(MODULE)}); nodeHttp.createServer()`)).toBe(0)
  // Once this is 0, node-http.ts can go.
  expect(loadedBy(`await import('node:http')`)).toBeGreaterThan(0)
})

test('no source imports it for more than types', () => {
  const sources = globSync('{edge,control,shared,certs,cli}/**/*.ts', { cwd: ROOT }).filter(
    (file) => !file.includes('dist/'),
  )
  const imported = sources.filter((file) =>
    /^import (?!type ).* from '(?:node:)?http'$/m.test(readFileSync(path.join(ROOT, file), 'utf8')),
  )
  expect(imported).toEqual([])
})
