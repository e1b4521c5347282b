/** Properties are the same in every run, end at the first counterexample and do not take longer than they find. */
import fc from 'fast-check'

fc.configureGlobal({ seed: 20_261_115, endOnFailure: true, interruptAfterTimeLimit: 500 })
