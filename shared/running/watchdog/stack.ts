/** The stack of a main thread that is busy, read from another thread of the process. */
import { Session, type Debugger } from 'node:inspector'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Frame {
  readonly functionName: string
  readonly url: string
  readonly line: number
  readonly column: number
}

const MAX_FRAMES = 30
/** V8 stops at the next statement, and inside a regular expression too; one native call can only be waited for. */
const PAUSE_MS = 2000

/** The stack; undefined when the main thread could not be stopped. It stays stopped: the process is about to end. */
export async function readStack(): Promise<Frame[] | undefined> {
  const session = new Session()
  const urls = new Map<string, string>()
  const { promise, resolve } = Promise.withResolvers<Frame[]>()
  try {
    session.connectToMainThread()
    session.on('Debugger.scriptParsed', ({ params }) => void urls.set(params.scriptId, params.url))
    session.on('Debugger.paused', ({ params }) =>
      resolve(params.callFrames.slice(0, MAX_FRAMES).map((frame) => toFrame(frame, urls))),
    )
    session.post('Debugger.enable')
    session.post('Debugger.pause')
    return await Promise.race([promise, sleep(PAUSE_MS, undefined)])
  } catch {
    return undefined
  }
}

/** The inspector counts from zero, people from one. */
function toFrame({ functionName, location }: Debugger.CallFrame, urls: ReadonlyMap<string, string>): Frame {
  return {
    functionName,
    url: urls.get(location.scriptId) ?? location.scriptId,
    line: location.lineNumber + 1,
    column: (location.columnNumber ?? 0) + 1,
  }
}
