/**
 * A plane that starts: `node starting-process.ts` says a word when it knows the addresses, and is ready when the file that
 * MIGRATED names is there. With MIGRATED it says that it migrates meanwhile.
 */
import { existsSync } from 'node:fs'
import { awaitAddresses } from '../../shared/settings/addresses.ts'

const { MIGRATED } = await awaitAddresses()
if (MIGRATED !== undefined) process.send?.({ migrating: true })
process.send?.({ word: 'at work' })
const waiting = setInterval(() => {
  if (MIGRATED === undefined || !existsSync(MIGRATED)) return
  clearInterval(waiting)
  process.send?.({ migrating: false })
  process.send?.({ ready: true })
}, 5)
process.on('message', () => {})
process.on('disconnect', () => process.exit())
