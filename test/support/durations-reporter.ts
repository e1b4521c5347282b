/** After a run: how long it took, and which files took longer than `test/durations.json` has for them. */
import type { Reporter, TestModule } from 'vitest/node'
import { overrun } from './durations.ts'

/** In a deep run durations are judged; elsewhere a busy neighbour must not matter. */
const ARE_JUDGED = process.env['DURATIONS'] === 'judged'

export default class DurationsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const late = overrun(
      modules.map((module) => ({ moduleId: module.moduleId, seconds: module.diagnostic().duration / 1000 })),
    )
    for (const sentence of late) console.log(sentence)
    if (ARE_JUDGED && late.length > 0) process.exitCode = 1
  }
}
