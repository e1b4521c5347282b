/** Sources of answers as a schedule plans them: bytes in memory, stored files, another server's answers, streams. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import type { Exchange } from '../../../../edge/context.ts'
import { createDirectoryBlobStore } from '../../../../shared/blobs/directory-store.ts'
import { CONTENT, type PlannedAnswer } from './schedule.ts'

export interface PlannedSources {
  /** Answers as planned. Returns the source, where there is one. */
  answer(exchange: Exchange, index: number, answer: PlannedAnswer): Promise<Readable | undefined>
  stop(): void
}

export async function openPlannedSources(): Promise<PlannedSources> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-answers-'))
  const blobs = createDirectoryBlobStore(folder)
  const { hash } = await blobs.put(CONTENT)
  const control = http.createServer((request, response) => void answerAsControl(request.url ?? '', response))
  control.listen(0, '127.0.0.1')
  await once(control, 'listening')
  const { port } = control.address() as AddressInfo
  // A kept connection may end as a request goes out on it.
  const agent = new http.Agent({ keepAlive: false })

  async function askControl(answer: PlannedAnswer): Promise<http.IncomingMessage> {
    const request = http.get({ port, agent, path: `/${encodeURIComponent(JSON.stringify(answer))}` })
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    request.on('error', () => {})
    return response
  }

  return {
    async answer(exchange, index, answer) {
      const length = answer.isAnnounced ? ['content-length', String(answer.size)] : []
      const headers = ['x-answer', String(index), ...length]
      const bytes = CONTENT.subarray(answer.start, answer.start + answer.size)
      if (answer.source === 'memory' || (answer.source === 'file' && answer.size === 0)) {
        exchange.send(200, headers, bytes)
        return undefined
      }
      if (answer.source === 'relay') {
        // As the proxy does before it asks.
        exchange.full?.forControl()
        const source = await askControl(answer)
        exchange.full?.relay(200, headers, source)
        return source
      }
      const source =
        answer.source === 'file'
          ? blobs.stream(hash, { start: answer.start, end: answer.start + answer.size - 1 })
          : plannedStream(answer)
      exchange.stream(200, headers, source, answer.size)
      return source
    },
    stop() {
      agent.destroy()
      control.closeAllConnections()
      control.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The chunks of a source, and where it stops. */
function chunksOf({ start, size, chunks, flaw }: PlannedAnswer): Buffer[] {
  const end = flaw === undefined ? size : flaw.kind === 'long' ? size + 1 + (flaw.at % 50) : flaw.at
  const parts: Buffer[] = []
  for (let at = 0, index = 0; at < end; index++) {
    const next = Math.min(end, at + (chunks[index % chunks.length] ?? 1))
    parts.push(CONTENT.subarray(start + at, start + next))
    at = next
  }
  return parts
}

function plannedStream(answer: PlannedAnswer): Readable {
  const parts = chunksOf(answer)
  let index = 0
  return new Readable({
    read() {
      void pause(answer, index).then(() => {
        const part = parts[index++]
        if (part !== undefined) this.push(part)
        else if (answer.flaw?.kind === 'error') this.destroy(new Error('planned'))
        else if (answer.flaw?.kind === 'close') this.destroy()
        else this.push(null)
      })
    },
  })
}

async function answerAsControl(url: string, response: http.ServerResponse): Promise<void> {
  const answer = JSON.parse(decodeURIComponent(url.slice(1))) as PlannedAnswer
  response.writeHead(200, answer.isAnnounced ? { 'content-length': answer.size } : {})
  response.flushHeaders()
  for (const [index, part] of chunksOf(answer).entries()) {
    await pause(answer, index)
    if (response.destroyed) return
    response.write(part)
  }
  if (answer.flaw === undefined) response.end()
  else response.destroy()
}

async function pause({ pauses }: PlannedAnswer, index: number): Promise<void> {
  for (let turns = pauses[index % pauses.length] ?? 0; turns > 0; turns--) await turn()
}
