/**
 * `uWebSockets.js` as hyper-express requires it: the native server when its binary loads on this machine,
 * else the same interface over node:http.
 */
import { createRequire } from 'node:module'
import { App as NodeApp, closeListenSocket, localPort } from './app.ts'
import type { ListenSocket } from './app.ts'
import type { HttpRequest } from './http-request.ts'
import type { HttpResponse } from './http-response.ts'

/** Optional and without types here: published for linux-x64 with glibc 2.38 or newer only. */
const NATIVE_PACKAGE = '@uwsjs/core'

const overNodeHttp = {
  App: () => new NodeApp(),
  SSLApp: (): never => {
    throw new Error('TLS needs the native uWebSockets.js; here the edge terminates it.')
  },
  us_listen_socket_close: closeListenSocket,
  us_socket_local_port: localPort,
  LIBUS_LISTEN_EXCLUSIVE_PORT: 1,
  // Named by hyper-express at load; WebSockets themselves are refused by `App.ws`.
  DISABLED: 0,
}

function loadNative(): typeof overNodeHttp | undefined {
  try {
    return createRequire(import.meta.url)(NATIVE_PACKAGE) as typeof overNodeHttp
  } catch {
    return undefined
  }
}

const implementation = loadNative() ?? overNodeHttp

/** `require('uWebSockets.js')` gets this object itself. */
export { implementation as 'module.exports' }

export type { HttpRequest, HttpResponse }
export type us_listen_socket = ListenSocket
