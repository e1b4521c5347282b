import type { IncomingMessage } from 'node:http'

/** A request as a server hands it out: Node has read its first line. (Answers that a client gets are IncomingMessages too.) */
export interface ReceivedRequest extends IncomingMessage {
  method: string
  url: string
}
