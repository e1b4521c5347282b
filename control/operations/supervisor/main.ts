/** `npm start`: runs the whole service on this machine until it is told to stop. */
import { importBuilt } from '../../../shared/running/built.ts'

const { runSupervisor } = await importBuilt(
  'control/operations/supervisor/supervisor.ts',
  () => import('./supervisor.ts'),
)
await runSupervisor(process.env)
