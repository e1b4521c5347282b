/**
 * About how many tokens a language model reads in a text. Models divide texts each in their own way; the shares below are
 * those of a widely used one (o200k) and are right within a third for prose, code and tables in common languages.
 * Linear.
 */
const ASCII_PER_TOKEN = 4.2
/** Han, kana and Hangul: a character is most of a token. */
const WIDE_PER_TOKEN = 1.35
/** Accented Latin, Cyrillic, Greek, Arabic, Hebrew, the scripts of India. */
const OTHER_PER_TOKEN = 3.4

const FIRST_WIDE = 0x2e80
const LAST_WIDE = 0xffff

export function estimateTokens(text: string): number {
  let [ascii, wide, other] = [0, 0, 0]
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < 0x80) ascii++
    else if (code >= FIRST_WIDE && code <= LAST_WIDE) wide++
    else other++
  }
  return Math.ceil(ascii / ASCII_PER_TOKEN + wide / WIDE_PER_TOKEN + other / OTHER_PER_TOKEN)
}
