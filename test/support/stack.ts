export async function startSharedStack(): Promise<never> {
  throw new Error('not yet')
}
