import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseAddress, readSettings, rememberService } from '../../../cli/service/settings.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(path.join(os.tmpdir(), 'dropway-settings-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))

test.each([
  ['https://dropway.example', 'https://dropway.example'],
  ['https://dropway.example/some/path', 'https://dropway.example'],
  ['HTTPS://Dropway.Example/', 'https://dropway.example'],
  ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
  ['dropway.example', 'https://dropway.example'],
  ['localhost:8443', 'https://localhost:8443'],
  ['ftp://dropway.example', undefined],
  ['', undefined],
  ['not an address', undefined],
  ['user:secret@dropway.example', undefined],
])('%s means %s', (text, expected) => {
  if (expected === undefined) expect(() => parseAddress(text, 'It')).toThrow(/such as https:/)
  else expect(parseAddress(text, 'It')).toBe(expected)
})

describe('the service', () => {
  test('has no default; what login remembers counts until DROPWAY_URL says otherwise', async () => {
    expect(readSettings({ HOME: home }).url).toBeUndefined()
    const { configDir } = readSettings({ HOME: home })
    rememberService(configDir, 'https://one.example', path.join(home, 'ca.pem'))
    expect((await stat(path.join(configDir, 'config.json'))).mode & 0o777).toBe(0o600)
    const remembered = readSettings({ HOME: home })
    expect(remembered.url).toBe('https://one.example')
    expect(remembered.caFileFor('https://one.example')).toBe(path.join(home, 'ca.pem'))
    expect(remembered.caFileFor('https://two.example')).toBeUndefined()
    expect(readSettings({ HOME: home, DROPWAY_URL: 'two.example' }).url).toBe('https://two.example')
  })
  test('a damaged note is no obstacle', async () => {
    const { configDir } = readSettings({ HOME: home })
    rememberService(configDir, 'https://one.example', undefined)
    await writeFile(path.join(configDir, 'config.json'), '{"url"')
    expect(readSettings({ HOME: home }).url).toBeUndefined()
  })
})

test.each([
  [{ DISPLAY: ':0' }, true],
  [{ WAYLAND_DISPLAY: 'wayland-0' }, true],
  [{}, false],
  [{ DISPLAY: ':0', SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' }, false],
  [{ DISPLAY: ':0', CI: 'true' }, false],
  [{ BROWSER: 'firefox', SSH_TTY: '/dev/pts/1' }, true],
])('%j has a browser that its user sees: %s', (env, expected) => {
  expect(readSettings({ HOME: home, ...env }).hasBrowser).toBe(expected)
})
