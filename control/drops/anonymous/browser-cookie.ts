/** The signed cookie that remembers which drops a browser made. */
import { randomSecret, type Secrets } from '../../../shared/secrets/secrets.ts'
import { cookie } from '../../ground/http/reply.ts'
import type { Request } from '../../ground/http/route.ts'

const NAME = '__Host-dropway_anonymous'
const MAX_AGE_SECONDS = 400 * 24 * 3600

export interface BrowserCookie {
  /** The browser's id, when its cookie is ours. */
  read(request: Request): string | undefined
  /** The browser's id, new if needed, and the cookie to send when it is new. */
  readOrCreate(request: Request): { id: string; setCookie: string | undefined }
}

export function createBrowserCookie(secrets: Pick<Secrets, 'sign' | 'verify'>): BrowserCookie {
  function read(request: Request): string | undefined {
    const [id = '', signature = ''] = request.cookie(NAME)?.split('.') ?? []
    return id !== '' && secrets.verify('anonymous-cookie', id, signature) ? id : undefined
  }
  return {
    read,
    readOrCreate(request) {
      const known = read(request)
      if (known !== undefined) return { id: known, setCookie: undefined }
      const id = randomSecret(16)
      return {
        id,
        setCookie: cookie(NAME, `${id}.${secrets.sign('anonymous-cookie', id)}`, { maxAgeSeconds: MAX_AGE_SECONDS }),
      }
    },
  }
}
