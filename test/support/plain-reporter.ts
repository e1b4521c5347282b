/** Ends the output with one plain line for machines that read it. */
import type { Reporter, TestModule } from 'vitest/node'

export default class PlainReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const results = modules.flatMap((module) => [...module.children.allTests()]).map((test) => test.result().state)
    const brokenFiles = modules.filter((module) => module.errors().length > 0).length
    const failed = results.filter((state) => state === 'failed').length + brokenFiles + unhandled.length
    const skipped = results.filter((state) => state === 'skipped' || state === 'pending').length
    console.log(`${results.filter((state) => state === 'passed').length} passed, ${failed} failed, ${skipped} skipped`)
    // What CI does not run, CI does not show.
    if (skipped > 0) process.exitCode = 1
  }
}
