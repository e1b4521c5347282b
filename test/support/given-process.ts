/** Loaded with NODE_OPTIONS=--import into processes of the service that a test starts. */
import { HAS_QUICK_PASSWORDS } from './depth.ts'
import { answerLate } from './late-answers.ts'
import { hashQuickly } from './quick-passwords.ts'

if (HAS_QUICK_PASSWORDS) hashQuickly(true)
answerLate()
