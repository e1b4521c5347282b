/** The Redis stand-in's process. It ends with its supervisor. */
import { createRedisServer } from 'js-redis-server'
import { giveBackWhenIdle } from '../../../../shared/running/idle-memory.ts'

const server = await createRedisServer({ port: Number(process.argv[2]) })
giveBackWhenIdle()
process.send?.({ port: server.port })
process.on('disconnect', () => process.exit(0))
process.on('SIGTERM', () => process.exit(0))
