/** Loaded into the processes of a bench before their own code: SIGUSR2 makes them collect garbage, so that what is left is held. */
import v8 from 'node:v8'
import vm from 'node:vm'

v8.setFlagsFromString('--expose-gc')
const collect = vm.runInNewContext('gc') as () => void
v8.setFlagsFromString('--no-expose-gc')

process.on('SIGUSR2', () => {
  // What has a finalizer goes with the second one.
  collect()
  collect()
})
