import { expect, test } from 'vitest'
import { createJobs } from '../../../control/ground/jobs.ts'
import { silentLog } from '../../../shared/running/log.ts'

const HOUR_MS = 3_600_000

test('jobs run again and again; one that looks at everything only once in its time; a failing one stops no other', async () => {
  const runs = { often: 0, seldom: 0, failing: 0 }
  const { promise, resolve } = Promise.withResolvers<void>()
  const jobs = createJobs({
    intervalMs: 1,
    log: silentLog,
    jobs: [
      { name: 'failing', run: () => (runs.failing++, Promise.reject(new Error('no'))) },
      { name: 'seldom', atMostEveryMs: HOUR_MS, run: async () => runs.seldom++ },
      { name: 'often', run: async () => void (++runs.often === 5 && resolve()) },
    ],
  })
  jobs.start()
  await promise
  await jobs.stop()
  expect(runs).toEqual({ often: 5, seldom: 1, failing: 5 })
})
