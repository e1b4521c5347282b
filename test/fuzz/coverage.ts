/** Which parts of our own sources have run, as V8 counts them. */
import { Session } from 'node:inspector/promises'

export interface Coverage {
  /** Parts that have run since the last call; how often something ran counts as a part, roughly. */
  take(): Promise<readonly string[]>
  close(): Promise<void>
}

export async function startCoverage(root: string): Promise<Coverage> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  return {
    async take() {
      const { result } = await session.post('Profiler.takePreciseCoverage')
      const parts: string[] = []
      for (const script of result) {
        if (!script.url.startsWith(root) || script.url.includes('/test/')) continue
        for (const { ranges } of script.functions)
          for (const { startOffset, endOffset, count } of ranges)
            if (count > 0) parts.push(`${script.scriptId}:${startOffset}:${endOffset}:${Math.ceil(Math.log2(count))}`)
      }
      return parts
    },
    async close() {
      await session.post('Profiler.stopPreciseCoverage')
      session.disconnect()
    },
  }
}
