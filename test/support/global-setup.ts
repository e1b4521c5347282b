import type { TestProject } from 'vitest/node'
import { startBroker } from './broker.ts'
import { installSharedCli } from './cli.ts'
import { startSharedPostgres } from './postgres.ts'
import { startSharedStack } from './stack.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    broker: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const broker = await startBroker({
    postgres: startSharedPostgres,
    stack: startSharedStack,
    cli: installSharedCli,
  })
  project.provide('broker', broker.address)
  return () => broker.stop()
}
