/**
 * Node's HTTP/1.1, without the rest of `node:http`. Importing that module asks it for everything that it exports, and one of
 * these things is the implementation of `fetch`: a tenth of a second of processor time and some seven megabytes of memory in
 * each process. Asking for the module itself loads only what is used.
 */
import type http from 'node:http'

export const nodeHttp: typeof http = process.getBuiltinModule('node:http')
