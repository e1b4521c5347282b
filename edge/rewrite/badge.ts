/**
 * The badge on anonymous and free drops: a small link to the service and one to report the page. An element of its
 * own name, so that no rule or script that means the page's elements finds it; fixed, so that nothing shifts.
 */
import type { Palette, Shades } from '../../shared/pages/accent.ts'
import { escape } from '../../shared/pages/html.ts'
import { reportAddressOf } from '../../shared/http/report-address.ts'
import { important } from './consent-banner.ts'

const SELF = '#dropway-badge#dropway-badge'
type Rules = readonly (readonly [selector: string, declarations: string])[]

const rulesOf = (light: Shades): Rules => [
  [
    SELF,
    'all:initial;position:fixed;z-index:2147483646;right:calc(12px + env(safe-area-inset-right,0px));bottom:calc(12px + env(safe-area-inset-bottom,0px));display:flex;align-items:center;overflow:hidden;border:1px solid rgb(16 33 30/.14);border-radius:999px;background:rgb(255 255 255/.94);color:#10211e;color-scheme:light;font:560 12px/1 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;box-shadow:0 2px 10px -2px rgb(16 33 30/.22)',
  ],
  [
    `${SELF} a`,
    'all:unset;display:flex;align-items:center;box-sizing:border-box;min-height:28px;padding:0 10px;color:inherit;cursor:pointer;white-space:nowrap',
  ],
  [`${SELF} a:first-child`, 'padding-right:8px'],
  [
    `${SELF} a:first-child::before`,
    `content:"";width:8px;height:8px;margin:1px 7px 0 2px;border-radius:0 50% 50% 50%;background:${light.accent};transform:rotate(45deg)`,
  ],
  [`${SELF} a:last-child`, 'padding-left:8px;border-left:1px solid rgb(16 33 30/.12);color:#475955;font-weight:400'],
  [`${SELF} a:hover`, `color:${light.strong};background:${light.soft}`],
  [`${SELF} a:focus-visible`, `outline:2px solid ${light.accent};outline-offset:-3px;border-radius:999px`],
]
const darkRulesOf = (dark: Shades): Rules => [
  [SELF, 'border-color:rgb(231 240 238/.2);background:rgb(20 32 30/.94);color:#e7f0ee;color-scheme:dark'],
  [`${SELF} a:first-child::before`, `background:${dark.accent}`],
  [`${SELF} a:last-child`, 'border-left-color:rgb(231 240 238/.16);color:#a6b8b4'],
  [`${SELF} a:hover`, `color:${dark.strong};background:${dark.soft}`],
  [`${SELF} a:focus-visible`, `outline-color:${dark.accent}`],
]

export function badgeCss({ light, dark }: Palette): string {
  return `${important(rulesOf(light))}@media (prefers-color-scheme:dark){${important(darkRulesOf(dark))}}@media print{${SELF}{display:none!important}}`
}

export function badgeHtml({ baseUrl, host, name }: { baseUrl: string; host: string; name: string }): string {
  const by = escape(`Published with ${name}`)
  const home = escape(`${baseUrl}/`)
  const report = escape(reportAddressOf(baseUrl, host))
  return `<dropway-badge id="dropway-badge" role="complementary" aria-label="${by}"><a href="${home}" target="_blank" rel="noopener nofollow" title="${by}">${escape(name)}</a><a href="${report}" target="_blank" rel="noopener nofollow" title="Report this page">Report</a></dropway-badge>`
}

/** As high as the badge and its distance to the edges. */
const FRAME_HEIGHT = 54

/**
 * A page of frames shows nothing but frames: the badge is one more, below all others. The frameset of the page becomes a
 * part of one around it, which no end tag of the page closes, so that what is appended to the page still belongs to it.
 */
export function badgeFrames(
  badge: string,
  style: string,
  name: string,
): { readonly open: string; readonly close: string } {
  const title = escape(`Published with ${name}`)
  const page = `<!doctype html><title>${title}</title>${badge}<style>${style}</style>`
  return {
    open: `<frameset rows="*,${FRAME_HEIGHT}">`,
    close: `<frame title="${title}" scrolling="no" noresize src="data:text/html;charset=utf-8,${encodeURIComponent(page)}"></frameset>`,
  }
}
