/** The language of the consent banner: Accept-Language, RFC 9110 §12.5.4, matched by primary subtag. */

export const languages = ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'pl', 'sv', 'da', 'fi', 'cs'] as const
export type Language = (typeof languages)[number]

const DEFAULT: Language = 'en'
/** Browsers send a handful of ranges; more would only cost time. */
const MAX_RANGES = 20
const MAX_HEADER_CHARS = 500

export function chooseLanguage(acceptLanguage: string | undefined): Language {
  let best: Language | undefined
  let bestWeight = 0
  for (const range of (acceptLanguage ?? '').slice(0, MAX_HEADER_CHARS).split(',', MAX_RANGES)) {
    const [, written, weightText = '1'] =
      /^\s*([a-z]+|\*)(?:-[a-z0-9-]*)?\s*(?:;\s*q\s*=\s*(\d(?:\.\d{0,3})?)\s*)?$/i.exec(range) ?? []
    if (written === undefined) continue
    const tag = written.toLowerCase()
    const language = tag === '*' ? DEFAULT : languages.find((candidate) => candidate === tag)
    const weight = Number(weightText)
    // The first of equal weights counts: that is the order of the visitor's own list.
    if (language && weight > bestWeight) [best, bestWeight] = [language, weight]
  }
  return best ?? DEFAULT
}
