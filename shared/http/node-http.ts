/**
 * Node's HTTP/1.1, without the rest of `node:http`. Importing that module asks it for everything that it exports, and one of
 * these things is the implementation of `fetch`: a tenth of a second of processor time and some seven megabytes of memory in
 * each process. `require` loads only what is used, and is there in every Node that the client runs on.
 */
import type http from 'node:http'
import { createRequire } from 'node:module'

export const nodeHttp = createRequire(import.meta.url)('node:http') as typeof http
