/** Reads one configuration file of another host. It never throws: what cannot be read is ignored, and says why. */
import { newDraft, type PageLayout, type TranslatedFile, type Translation } from './host-file.ts'
import { translateFirebase } from './firebase.ts'
import { translateNetlify } from './netlify.ts'
import { translateStaticWebApp } from './static-web-app.ts'
import { translateVercel } from './vercel.ts'

/** Two thousand redirects take half of it. */
export const MAX_HOST_FILE_BYTES = 500_000
/** As many as a person reads; the last one says how many more there are. */
const MAX_IGNORED = 20
/** A parser may quote what it could not read. */
const MAX_REASON_CHARS = 200

const TRANSLATORS: Readonly<Record<TranslatedFile, (text: string, layout: PageLayout) => Translation>> = {
  'netlify.toml': translateNetlify,
  'vercel.json': translateVercel,
  'firebase.json': translateFirebase,
  'staticwebapp.config.json': translateStaticWebApp,
}

export function translateHostFile(path: TranslatedFile, text: string, layout: PageLayout): Translation {
  if (text.length > MAX_HOST_FILE_BYTES) return tooLarge()
  try {
    const translation = TRANSLATORS[path](text.replace(/^\ufeff/, ''), layout)
    return { ...translation, ignored: shortened(translation.ignored) }
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : ''
    return { ...newDraft(), ignored: [`It cannot be read: ${reason.slice(0, MAX_REASON_CHARS)}`] }
  }
}

/** What a file says that is too large to be read. */
export function tooLarge(): Translation {
  return { ...newDraft(), ignored: [`It is larger than ${MAX_HOST_FILE_BYTES / 1000} kB and was not read.`] }
}

function shortened(ignored: readonly string[]): readonly string[] {
  if (ignored.length <= MAX_IGNORED) return ignored
  return [...ignored.slice(0, MAX_IGNORED - 1), `${ignored.length - MAX_IGNORED + 1} more rules like these.`]
}
