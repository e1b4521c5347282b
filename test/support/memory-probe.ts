/**
 * Loaded into a process of ours with NODE_OPTIONS=--import: on SIGUSR2 it collects garbage and writes down what is
 * left. The resident size alone says little: V8 keeps pages for a hundred megabytes of garbage at a time.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const file = `${process.env['MEMORY_PROBE']}-${process.pid}.json`

process.on('SIGUSR2', () => {
  // Twice: what the first run's finalizers let go of is collected by the second.
  collect()
  setImmediate(() => {
    collect()
    const { heapUsed, external, rss } = process.memoryUsage()
    writeFileSync(`${file}.new`, JSON.stringify({ heldBytes: heapUsed + external, residentBytes: rss }))
    renameSync(`${file}.new`, file)
  })
})
