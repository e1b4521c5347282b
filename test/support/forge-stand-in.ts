/** The comments of one pull request, as GitHub, GitLab and Forgejo keep them: their paths, methods and tokens. */
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

export type ForgeName = 'github' | 'gitlab' | 'forgejo'

export interface ForgeStandIn {
  /** What a job's environment says of the API. */
  readonly api: string
  readonly comments: { id: number; body: string }[]
  /** Requests that such a forge would not understand, or refuse. */
  readonly complaints: string[]
  /** The token of the job may only read, as that of a fork. */
  isReadOnly: boolean
  stop(): Promise<void>
}

const ROUTES: Readonly<
  Record<ForgeName, { list: RegExp; one: RegExp; change: string; header: string; token: string }>
> = {
  github: {
    list: /^\/api\/repos\/me\/site\/issues\/12\/comments$/,
    one: /^\/api\/repos\/me\/site\/issues\/comments\/(\d+)$/,
    change: 'PATCH',
    header: 'authorization',
    token: 'Bearer forge-token',
  },
  forgejo: {
    list: /^\/api\/repos\/me\/site\/issues\/12\/comments$/,
    one: /^\/api\/repos\/me\/site\/issues\/comments\/(\d+)$/,
    change: 'PATCH',
    header: 'authorization',
    token: 'token forge-token',
  },
  gitlab: {
    list: /^\/api\/projects\/7\/merge_requests\/12\/notes$/,
    one: /^\/api\/projects\/7\/merge_requests\/12\/notes\/(\d+)$/,
    change: 'PUT',
    header: 'private-token',
    token: 'forge-token',
  },
}

export async function startForge(name: ForgeName): Promise<ForgeStandIn> {
  const { list, one, change, header, token } = ROUTES[name]
  const comments = [{ id: 1, body: 'Looks good to me' }]
  const complaints: string[] = []
  const forge = { isReadOnly: false }

  async function answer(request: http.IncomingMessage): Promise<[number, unknown]> {
    const { pathname } = new URL(request.url ?? '/', 'http://forge')
    if (request.headers[header] !== token) return [401, { message: 'Bad credentials' }]
    if (request.method === 'GET' && list.test(pathname)) return [200, comments]
    if (forge.isReadOnly) return [403, { message: 'Resource not accessible by integration' }]
    const id = Number(one.exec(pathname)?.[1])
    const { body } = (await json(request)) as { body: string }
    if (request.method === 'POST' && list.test(pathname)) {
      comments.push({ id: comments.length + 1, body })
      return [201, comments.at(-1)]
    }
    const known = comments.find((comment) => comment.id === id)
    if (request.method !== change || !known) {
      complaints.push(`${request.method} ${pathname}`)
      return [404, { message: 'Not Found' }]
    }
    known.body = body
    return [200, known]
  }

  const server = http.createServer((request, response) => {
    void answer(request).then(([status, body]) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(forge, {
    api: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`,
    comments,
    complaints,
    stop: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  })
}
