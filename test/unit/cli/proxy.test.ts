/** Proxies that the environment names: who goes through one, and that the tunnel carries the client's own TLS. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import https from 'node:https'
import type net from 'node:net'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openLocalCa } from '../../../certs/local/local-ca.ts'
import { createHttpClient } from '../../../cli/service/http-client.ts'
import { proxyFor } from '../../../cli/service/proxy.ts'
import { startTunnelProxy, type TunnelProxy } from '../../support/tunnel-proxy.ts'
import { systemClock } from '../../../shared/running/clock.ts'

describe('who goes through a proxy', () => {
  const all = { HTTPS_PROXY: 'http://proxy.example:3128', HTTP_PROXY: 'http://plain.example:80' }
  test.each([
    ['https://dropway.example', all, 'http://proxy.example:3128/'],
    ['http://dropway.example', all, 'http://plain.example/'],
    ['https://localhost:8443', all, 'http://proxy.example:3128/'],
    ['https://127.0.0.1:8443', all, 'http://proxy.example:3128/'],
    ['https://dropway.example', { https_proxy: 'http://lower.example' }, 'http://lower.example/'],
    ['https://dropway.example', { HTTPS_PROXY: 'proxy.example:3128' }, 'http://proxy.example:3128/'],
    ['https://dropway.example', { ALL_PROXY: 'http://any.example' }, 'http://any.example/'],
    ['https://dropway.example', { ...all, https_proxy: 'http://lower.example' }, 'http://lower.example/'],
    ['https://dropway.example', { HTTPS_PROXY: '' }, undefined],
    ['https://dropway.example', {}, undefined],
    ['https://dropway.example', { ...all, NO_PROXY: '*' }, undefined],
    ['https://dropway.example', { ...all, NO_PROXY: 'other.example, dropway.example' }, undefined],
    ['https://dropway.example', { ...all, no_proxy: 'dropway.example' }, undefined],
    ['https://drops.dropway.example', { ...all, NO_PROXY: 'dropway.example' }, undefined],
    ['https://drops.dropway.example', { ...all, NO_PROXY: '.dropway.example' }, undefined],
    ['https://drops.dropway.example', { ...all, NO_PROXY: '*.dropway.example' }, undefined],
    ['https://notdropway.example', { ...all, NO_PROXY: 'dropway.example' }, 'http://proxy.example:3128/'],
    ['https://Dropway.Example', { ...all, NO_PROXY: 'DROPWAY.example' }, undefined],
    ['https://dropway.example:8443', { ...all, NO_PROXY: 'dropway.example:8443' }, undefined],
    ['https://dropway.example', { ...all, NO_PROXY: 'dropway.example:443' }, undefined],
    ['https://dropway.example', { ...all, NO_PROXY: 'dropway.example:8443' }, 'http://proxy.example:3128/'],
    ['https://localhost:8443', { ...all, NO_PROXY: 'localhost' }, undefined],
    ['https://[::1]:8443', { ...all, NO_PROXY: '::1' }, undefined],
    ['https://[::1]:8443', { ...all, NO_PROXY: '[::1]:8443' }, undefined],
    ['https://10.1.2.3', { ...all, NO_PROXY: '10.0.0.0/8' }, undefined],
    ['https://11.1.2.3', { ...all, NO_PROXY: '10.0.0.0/8' }, 'http://proxy.example:3128/'],
  ])('%s with %j: %s', (url, env, expected) => {
    expect(proxyFor(new URL(url), env)?.href).toBe(expected)
  })

  test.each(['socks5://proxy.example', 'ftp://proxy.example', 'http://'])('%s is refused with what to do', (value) => {
    expect(() => proxyFor(new URL('https://dropway.example'), { HTTPS_PROXY: value })).toThrow(/HTTPS_PROXY/)
  })
})

let folder: string
let service: https.Server
let plain: http.Server
let proxy: TunnelProxy

const portOf = (server: net.Server): number => (server.address() as AddressInfo).port

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-proxy-'))
  const ca = openLocalCa(folder, systemClock)
  const { key, cert } = ca.serviceCertificate(['service.example', '::1'])
  await writeFile(path.join(folder, 'ca.pem'), ca.rootPem)
  service = https.createServer({ key, cert }, (request, response) => response.end(`tls ${request.url}`))
  plain = http.createServer((request, response) => response.end(`plain ${request.headers.host} ${request.url}`))
  for (const server of [service, plain]) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  }
})
beforeEach(async () => {
  proxy = await startTunnelProxy((target) => portOf(target.endsWith(':80') ? plain : service))
})
afterEach(() => proxy.close())
afterAll(async () => {
  for (const server of [service, plain]) {
    server.closeAllConnections()
    server.close()
  }
  await rm(folder, { recursive: true, force: true })
})

const clientWith = (address: string) =>
  createHttpClient({
    caFile: path.join(folder, 'ca.pem'),
    userAgent: 'test',
    proxyFor: () => new URL(address),
  })

test('the tunnel is asked for by name, and the certificate of the service is looked at through it', async () => {
  const client = clientWith(proxy.url.replace('//', '//user:p%40ss@'))
  for (const target of ['/one', '/two']) {
    const reply = await client.send(`https://service.example${target}`, { method: 'GET' })
    expect([reply.status, await reply.text()]).toEqual([200, `tls ${target}`])
  }
  // One connection is kept for both.
  expect(proxy.asked).toEqual([`service.example:443 Basic ${Buffer.from('user:p@ss').toString('base64')}`])
  await expect(client.send('https://other.example/', { method: 'GET' })).rejects.toThrow(/other\.example/)
  client.close()
})

test('an address of IPv6 is asked for in brackets', async () => {
  const client = clientWith(proxy.url)
  expect(await (await client.send('https://[::1]:8443/x', { method: 'GET' })).text()).toBe('tls /x')
  expect(proxy.asked).toEqual(['[::1]:8443'])
  client.close()
})

test('plain http goes through a tunnel too', async () => {
  const client = clientWith(proxy.url)
  const reply = await client.send('http://service.example/x', { method: 'POST', body: 'content' })
  expect(await reply.text()).toBe('plain service.example /x')
  expect(proxy.asked).toEqual(['service.example:80'])
  client.close()
})

test('a proxy that refuses or is away is named', async () => {
  proxy.refusal = 407
  const refused = clientWith(proxy.url)
  await expect(refused.send('https://service.example/', { method: 'GET' })).rejects.toThrow(
    `The proxy ${proxy.url} answered 407`,
  )
  refused.close()
  const away = clientWith('http://127.0.0.1:1')
  await expect(away.send('https://service.example/', { method: 'GET' })).rejects.toThrow(
    /The proxy http:\/\/127\.0\.0\.1:1 cannot be reached/,
  )
  away.close()
})
