/** /healthz, /readyz and /metrics on a port of their own, summed over the workers. */
import type { AddressInfo } from 'node:net'
import { nodeHttp } from '../../../shared/http/node-http.ts'
import type { FiguresDependencies } from './figures.ts'

export interface MetricsDependencies extends FiguresDependencies {
  /** The edge was told to stop. */
  isLeaving(): boolean
}

export async function startMetrics(
  { port, host }: { port: number; host: string },
  dependencies: MetricsDependencies,
): Promise<{ port: number; close(): void }> {
  const server = nodeHttp.createServer((request, response) => {
    void answer(request.url ?? '', dependencies).then(({ status, type, body }) => {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' })
      response.end(body)
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function answer(
  url: string,
  dependencies: MetricsDependencies,
): Promise<{ status: number; type: string; body: string }> {
  if (url === '/metrics') {
    // Loaded when somebody collects figures: a twentieth of the primary's memory.
    const { writeFigures } = await import('./figures.ts')
    return { status: 200, ...(await writeFigures(dependencies)) }
  }
  if (url === '/healthz' || url === '/readyz') {
    const alive = (await dependencies.workers.report({ isScrape: false })).length
    const health = {
      workers: alive,
      following: dependencies.follower.isFollowing(),
      position: dependencies.follower.position(),
      snapshot: dependencies.replica.snapshotEpoch() !== undefined,
      leaving: dependencies.isLeaving(),
    }
    // Redis away is no reason to take an edge out of service: it serves from its replica.
    const isFit = alive > 0 && (url === '/healthz' || (health.snapshot && !health.leaving))
    return { status: isFit ? 200 : 503, type: 'application/json', body: JSON.stringify(health) }
  }
  return { status: 404, type: 'text/plain', body: 'There is /healthz, /readyz and /metrics.\n' }
}
