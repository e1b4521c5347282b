import { expect, test } from 'vitest'
import { createReport, readablePlaneLine } from '../../../control/operations/supervisor/report.ts'

test.each([
  ['{"level":30,"msg":"ready"}', undefined],
  ['{"level":40,"msg":"Redis is away","err":{"message":"ECONNREFUSED"}}', 'warning: Redis is away: ECONNREFUSED'],
  ['{"level":50,"msg":"a worker died"}', 'error: a worker died'],
  ['{"level":60,"err":{"message":"out of memory"}}', 'error: out of memory'],
  ['TypeError: undefined is not a function', 'TypeError: undefined is not a function'],
  ['{ not JSON', '{ not JSON'],
  ['{"answer":42}', '{"answer":42}'],
  ['   ', undefined],
])('a plane writes %s', (line, shown) => {
  expect(readablePlaneLine(line)).toBe(shown)
})

test('one line per event and no control characters where no one watches', () => {
  const written: string[] = []
  const report = createReport({ write: (text) => written.push(text) })
  report.starting('edge')
  report.started('edge', 1234, '2 workers')
  report.crashed('edge', 200)
  report.restarted('edge')
  report.ready('https://localhost:8443')
  expect(written).toEqual([
    'edge     started in 1.2 s (2 workers)\n',
    'edge     ended unexpectedly; starting it again in 0.2 s\n',
    'edge     is back\n',
    'ready https://localhost:8443\n',
  ])
})
