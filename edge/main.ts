/** The edge. `node edge/main.ts` runs it alone; the supervisor runs it beside control. */
import { enableCompileCache } from 'node:module'
import { importBuilt } from '../shared/running/built.ts'
import { allocatorSettings } from '../shared/running/memory.ts'
import { awaitAddresses } from '../shared/settings/addresses.ts'

enableCompileCache()
const [, program = '', part] = process.argv
// The C library reads it when a process starts: it is for the workers.
Object.assign(process.env, { ...allocatorSettings('edge'), ...process.env })
const { runEdge } = await importBuilt('edge/processes/edge.ts', () => import('./processes/edge.ts'))
await runEdge({ env: process.env, part, program, awaitAddresses })
