/** Before each test file: properties draw from the seed of the run, not from the clock, and passwords cost what they should. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { HAS_QUICK_PASSWORDS, SEED } from './depth.ts'
import { answerLate } from './late-answers.ts'
import { hashQuickly } from './quick-passwords.ts'

fc.configureGlobal({ seed: SEED })
answerLate()
hashQuickly(HAS_QUICK_PASSWORDS && !expect.getState().testPath?.includes('/test/unit/'))
