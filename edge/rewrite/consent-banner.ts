/**
 * The consent banner. Trackers that set cookies wait until the visitor agrees (browser/consent.ts). The answer is kept in
 * the browser for this drop (`dw-consent` in localStorage). A page can offer to change it with a link to
 * `#cookie-settings`, and hear of it by the event `dw:consent`.
 */
import type { Palette, Shades } from '../../shared/pages/accent.ts'
import { consentTexts } from './consent-texts.ts'
import type { Language } from './language.ts'
import { scriptValue } from './script-text.ts'

/** Beats the page's own style sheet by `!important` and a doubled id; a reset first, so that nothing leaks in. */
const SELF = '#dw-consent#dw-consent'
type Rules = readonly (readonly [selector: string, declarations: string])[]

const rulesOf = (light: Shades): Rules => [
  [
    SELF,
    'all:initial;position:fixed;z-index:2147483647;right:12px;bottom:calc(12px + env(safe-area-inset-bottom,0px));left:12px;box-sizing:border-box;max-width:420px;margin-left:auto;padding:20px;border:1px solid #d8e2df;border-radius:16px;background:#fff;color:#10211e;color-scheme:light;font:400 15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;box-shadow:0 1px 2px rgb(16 33 30/.06),0 16px 40px -12px rgb(16 33 30/.28)',
  ],
  [`${SELF} *`, 'all:unset;box-sizing:border-box'],
  [`${SELF} h2`, 'display:block;margin:0 0 4px;font-weight:650;font-size:16px;line-height:1.35'],
  [`${SELF} p`, 'display:block;margin:0 0 16px;color:#475955'],
  [`${SELF} div`, 'display:flex;flex-wrap:wrap;gap:10px'],
  [
    `${SELF} button`,
    'flex:1 1 8em;min-height:44px;padding:8px 14px;border:1px solid #748581;border-radius:10px;background:#fff;color:#10211e;font-weight:560;text-align:center;cursor:pointer',
  ],
  [`${SELF} button:hover`, `border-color:${light.accent};background:${light.soft};color:${light.strong}`],
  [`${SELF} button:focus-visible`, `outline:3px solid ${light.accent};outline-offset:2px`],
]
const darkRulesOf = (dark: Shades): Rules => [
  [SELF, 'border-color:#263835;background:#14201e;color:#e7f0ee;color-scheme:dark'],
  [`${SELF} p`, 'color:#a6b8b4'],
  [`${SELF} button`, 'border-color:#748984;background:#14201e;color:#e7f0ee'],
  [`${SELF} button:hover`, `border-color:${dark.accent};background:${dark.soft};color:${dark.strong}`],
  [`${SELF} button:focus-visible`, `outline-color:${dark.accent}`],
]

export function consentCss({ light, dark }: Palette): string {
  return `${important(rulesOf(light))}@media (prefers-color-scheme:dark){${important(darkRulesOf(dark))}}@media print{${SELF}{display:none!important}}`
}

export function important(rules: Rules): string {
  return rules
    .map(
      ([selector, declarations]) =>
        `${selector}{${declarations
          .split(';')
          .map((declaration) => `${declaration}!important`)
          .join(';')}}`,
    )
    .join('')
}

/** A call of browser/consent.ts. `start`: statements that begin the trackers which wait. */
export function consentCall(language: Language, start: string): string {
  return `consent(${scriptValue({ ...consentTexts[language], lang: language })},()=>{${start}})`
}
