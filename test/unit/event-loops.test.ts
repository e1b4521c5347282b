/** What the fault suite makes of the planes' own figures. */
import { expect, test } from 'vitest'
import { delaysIn, judge } from '../support/event-loops.ts'

test('figures are read for each process', () => {
  const metrics = [
    '# HELP dropway_edge_event_loop_delay_p999_ms Since the last scrape.',
    'dropway_edge_event_loop_delay_p999_ms{process="primary"} 1.5',
    'dropway_edge_event_loop_delay_max_ms{process="primary"} 7',
    'dropway_edge_event_loop_delay_p999_ms{process="worker 12"} 3',
    'dropway_edge_event_loop_delay_max_ms{process="worker 12"} 1e+3',
    'dropway_edge_requests_total{process="worker 12"} 9',
  ].join('\n')
  expect(delaysIn(metrics, 'edge 0', 20)).toEqual([
    { process: 'edge 0 primary', p999Ms: 1.5, maxMs: 7, seconds: 20 },
    { process: 'edge 0 worker 12', p999Ms: 3, maxMs: 1000, seconds: 20 },
  ])
  const control = 'dropway_control_event_loop_delay_p999_ms 0\ndropway_control_event_loop_delay_max_ms 0.25\n'
  expect(delaysIn(control, 'control', 3)).toEqual([{ process: 'control', p999Ms: 0, maxMs: 0.25, seconds: 3 }])
})

test.each<[string, { p999Ms: number; maxMs: number; seconds?: number }, Partial<Parameters<typeof judge>[1]>, boolean]>(
  [
    ['at the bars', { p999Ms: 50, maxMs: 250 }, {}, true],
    ['worst too long', { p999Ms: 1, maxMs: 251 }, {}, false],
    ['one in a thousand too long', { p999Ms: 51, maxMs: 60 }, {}, false],
    ['one in a thousand, of a short time', { p999Ms: 51, maxMs: 60, seconds: 4 }, {}, true],
    ['twice as long where that is allowed', { p999Ms: 100, maxMs: 500 }, { slack: 2 }, true],
    ['too long where the system says nothing of others', { p999Ms: 900, maxMs: 900 }, { pressure: undefined }, false],
    ['too long where nothing can be said', { p999Ms: 900, maxMs: 900 }, { pressure: 0.51 }, true],
    ['too long while the host gave little to others', { p999Ms: 900, maxMs: 900 }, { stolen: 0.05 }, false],
    ['too long while the host gave the processors to others', { p999Ms: 900, maxMs: 900 }, { stolen: 0.06 }, true],
  ],
)('%s', (_, delay, changes, isFine) => {
  const circumstances = { pressure: 0.2, stolen: 0, slack: 1, ...changes }
  expect(judge([{ process: 'control', seconds: 20, ...delay }], circumstances).tooLong.length === 0).toBe(isFine)
})
