/** Before each test file: properties draw from the seed of the run, not from the clock. */
import fc from 'fast-check'
import { SEED } from './depth.ts'

fc.configureGlobal({ seed: SEED })
