/** Loaded with NODE_OPTIONS=--import into processes of the service that a test starts. */
import { HAS_QUICK_PASSWORDS, SEED } from './depth.ts'
import { answerLate, HAS_LATE_ANSWERS } from './late-answers.ts'
import { hashQuickly } from './quick-passwords.ts'

if (HAS_QUICK_PASSWORDS) hashQuickly(true)
if (HAS_LATE_ANSWERS) answerLate(SEED)
