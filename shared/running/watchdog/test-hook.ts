/** For `test/faults/hung.test.ts`: with TEST_HOOKS=hang, SIGUSR2 makes a process hang as an endless loop would. */
export function hangOnSignal(isWanted: boolean): void {
  if (isWanted)
    process.on('SIGUSR2', function hangForEver() {
      for (;;);
    })
}
