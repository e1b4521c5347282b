/** The edge. `node edge/main.ts` runs it alone; the supervisor runs it beside control. */
import { enableCompileCache } from 'node:module'
import { importBuilt } from '../shared/running/built.ts'
import { awaitAddresses } from '../shared/settings/addresses.ts'

enableCompileCache()
const [, program = '', part] = process.argv
const { runEdge } = await importBuilt('edge/processes/edge.ts', () => import('./processes/edge.ts'))
await runEdge({ env: process.env, part, program, awaitAddresses })
