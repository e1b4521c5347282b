/** Cookies as control gives them, for an edge whose control is played by the test. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { sealAdmission, VIEWERS_ONLY, type Admission } from '../../shared/contracts/admission.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import type { EdgeFixture, SiteSettings } from './edge-fixture.ts'

const secretsOf = ({ dataDir }: Pick<EdgeFixture, 'dataDir'>) =>
  createSecrets(readFileSync(path.join(dataDir, 'secret.key'), 'utf8').trim())

export function viewerCookie(fixture: Pick<EdgeFixture, 'dataDir'>, admission: Admission): string {
  return `__Host-dropway-viewer=${sealAdmission(secretsOf(fixture), admission)}`
}

/** The cookie of someone who knew the password of a drop. */
export function unlockCookie(
  fixture: Pick<EdgeFixture, 'dataDir'>,
  drop: { siteId: string; generation: number; hash: string },
): string {
  const { siteId, generation, hash } = drop
  return `__Host-dropway-unlock=${secretsOf(fixture).sign('unlock-cookie', `${siteId}\n${generation}\n${hash}`)}`
}

/** Settings of a drop that only its viewers see. */
export function viewersOnly(generation: number, ended: readonly [string, number][]): SiteSettings {
  return { password: { hash: VIEWERS_ONLY, generation }, viewers: { ended: [...ended], asks: true } }
}
