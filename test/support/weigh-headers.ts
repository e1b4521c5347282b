/** A process of its own, because it measures itself: `chars` of headers in each of `requests`, a turn of the loop per `turn`. */
import { setImmediate } from 'node:timers/promises'
import { createHeaderWeight } from '../../edge/accept/http2/header-weight.ts'

const [chars, requests, turn] = process.argv.slice(2).map(Number) as [number, number, number]
const weight = createHeaderWeight()
const headers = [':path', `/${'a'.repeat(chars)}`, 'user-agent', 'test']
const before = process.memoryUsage()
let mostBuffers = 0
for (let count = 1; count <= requests; count++) {
  weight.add(headers)
  if (count % turn > 0) continue
  await setImmediate()
  mostBuffers = Math.max(mostBuffers, process.memoryUsage().arrayBuffers - before.arrayBuffers)
}
const residentMb = (process.memoryUsage().rss - before.rss) / 1e6
console.log(JSON.stringify({ mostBuffersMb: mostBuffers / 1e6, residentMb }))
