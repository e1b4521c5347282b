/** Ends a connection before there is a request that a page could answer. */
import type { Duplex } from 'node:stream'
import { closeInStages } from './close-in-stages.ts'

export function refuse(socket: Duplex, status: string, headers = ''): void {
  if (!socket.writable) return void socket.destroy()
  closeInStages(
    socket,
    `HTTP/1.1 ${status}\r\n${headers}content-length: 0\r\ncache-control: no-store\r\nconnection: close\r\n\r\n`,
  )
}
