/** The control plane as a process: `npm run control`, or a child of the supervisor. */
import { importBuilt } from '../shared/running/built.ts'
import { awaitAddresses } from '../shared/settings/addresses.ts'

/**
 * Node gives all threads of a process four more for files, and each blob waits for the disk there. The disk makes as many
 * durable at once as wait. Read when the first of these threads starts, which no import does.
 */
process.env['UV_THREADPOOL_SIZE'] ??= '16'

const { runControl } = await importBuilt('control/plane.ts', () => import('./plane.ts'))
await runControl(await awaitAddresses())
