/** What the primary of an edge tells its workers, whoever started it. */
import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { allocatorSettings } from '../../shared/running/memory.ts'
import { startEdgeFixture } from '../support/edge-fixture.ts'
import { processTree } from '../support/processes.ts'

test("workers give memory of passwords back, and an operator's own word counts", async () => {
  const fixture = await startEdgeFixture({ env: { MALLOC_TRIM_THRESHOLD_: '1000000' } })
  onTestFinished(() => fixture.stop())
  const workers = processTree(fixture.edge.pid).slice(1)
  expect(workers).toHaveLength(2)
  for (const pid of workers) {
    const told = Object.fromEntries(
      readFileSync(`/proc/${pid}/environ`, 'utf8')
        .split('\0')
        .map((line) => line.split(/=(.*)/s).slice(0, 2)),
    )
    expect(told).toMatchObject({ ...allocatorSettings('edge'), MALLOC_TRIM_THRESHOLD_: '1000000' })
  }
})
