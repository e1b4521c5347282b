/** The Redis stand-in's process. It ends with its supervisor. */
import { createRedisServer } from 'js-redis-server'
import { giveBackWhenIdle } from '../../../../shared/running/idle-memory.ts'

// It keeps small values for long, and each would hold the whole piece of Node's pool that it was cut from: 77 kB a publish.
Buffer.poolSize = 0
const server = await createRedisServer({ port: Number(process.argv[2]) })
giveBackWhenIdle()
process.send?.({ port: server.port })
process.on('disconnect', () => process.exit(0))
process.on('SIGTERM', () => process.exit(0))
