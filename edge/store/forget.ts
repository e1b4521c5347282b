/** What a worker does when the primary says that something changed, before it confirms. */
import type { Change, Replica } from './replica/replica.ts'
import type { Routes } from './routes.ts'

export interface Remembered {
  readonly replica: Pick<Replica, 'refresh' | 'entries'>
  readonly routes: Pick<Routes, 'forget' | 'forgetAll'>
  readonly certificates: { forget(name: string): void }
}

/** The replica is read anew before anything is forgotten: what is read next must not be the old value. */
export function forgetChanges(
  { replica, routes, certificates }: Remembered,
  changes: readonly Change[] | undefined,
): void {
  replica.refresh()
  if (changes === undefined) {
    routes.forgetAll()
    for (const { name } of replica.entries('certificate')) certificates.forget(name)
    return
  }
  for (const { kind, name } of changes) {
    if (kind === 'route') routes.forget(name)
    else if (kind === 'certificate') certificates.forget(name)
  }
}
