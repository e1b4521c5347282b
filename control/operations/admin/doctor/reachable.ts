/** Does anything listen there? */
import net from 'node:net'
import { CONNECT_TIMEOUT_MS } from './finding.ts'

export function connects(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host, timeout: CONNECT_TIMEOUT_MS })
    const settle = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.on('connect', () => settle(true))
    socket.on('timeout', () => settle(false))
    socket.on('error', () => settle(false))
  })
}
