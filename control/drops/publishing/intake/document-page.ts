/**
 * The small page around a document that was published by itself: shows it, with the original beside it. No script; the
 * only request goes to the document.
 */
import { escape } from '../../../../shared/pages/html.ts'
import { bytesInWords } from '../../../../shared/values/sizes.ts'
import type { Shown } from '../../../../shared/content/upload-kind.ts'
import { writtenPage } from '../html/written-page.ts'

/** A longer text is there to be opened; a page that holds it all would be slow to read for every visitor. */
export const MAX_SHOWN_TEXT_BYTES = 500_000

export interface ShownDocument {
  readonly shown: Shown
  readonly filename: string
  readonly size: number
  readonly title?: string | undefined
  /** The content of a text that is short enough to be shown. */
  readonly text?: string | undefined
}

export function documentPage(document: ShownDocument): string {
  const { filename, shown, size } = document
  const title = document.title?.trim() || filename.replace(/\.[^.]+$/, '')
  const address = escape(encodeURIComponent(filename))
  return writtenPage({
    title,
    style: STYLE,
    kind: shown,
    body: [
      '<header>',
      `<h1>${escape(title)}</h1>`,
      `<p>${escape(filename)}, ${bytesInWords(size)} · <a href="${address}">Open</a> · <a href="${address}" download>Download</a></p>`,
      '</header>',
      '<main>',
      shownIn(document, address, escape(title)),
      '</main>',
    ],
  })
}

function shownIn({ shown, text }: ShownDocument, address: string, title: string): string {
  switch (shown) {
    case 'image':
      return `<a href="${address}"><img src="${address}" alt="${title}"></a>`
    case 'video':
      return `<video src="${address}" controls playsinline preload="metadata"></video>`
    case 'sound':
      return `<audio src="${address}" controls preload="metadata"></audio>`
    case 'pdf':
      return `<object data="${address}" type="application/pdf" aria-label="${title}"><p>This browser does not show PDF files in a page. <a href="${address}">Open the file</a></p></object>`
    case 'text':
      return text === undefined
        ? `<p>This text is too long to be shown in a page. <a href="${address}">Open the file</a></p>`
        : `<pre tabindex="0">${escape(text)}</pre>`
    default:
      return shown satisfies never
  }
}

/** What is transparent in a picture may be around dark or light ink: it lies on squares in which both are seen. */
const STYLE = `
:root{--paper:#fdfcfa;--ink:#1f2328;--soft:#59606a;--line:#e4e1db;--tint:#f4f2ee;--link:#0b57c2}
@media (prefers-color-scheme:dark){:root{--paper:#15171a;--ink:#dfe1e4;--soft:#9ba3ad;--line:#2e3238;--tint:#1e2125;--link:#8ab8ff}}
*{box-sizing:border-box}
html{height:100%}
body{min-height:100%;margin:0;display:flex;flex-direction:column;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans",sans-serif}
header{padding:1rem clamp(1rem,4vw,2rem) .75rem;border-bottom:1px solid var(--line)}
h1{margin:0;font-size:1.25rem;line-height:1.3;overflow-wrap:anywhere}
p{margin:.2rem 0 0;color:var(--soft);font-size:.925rem;overflow-wrap:anywhere}
a{color:var(--link);text-underline-offset:.16em}
:focus-visible{outline:2px solid var(--link);outline-offset:2px;border-radius:2px}
main{flex:1 0 auto;padding:clamp(.75rem,3vw,2rem);display:flex;justify-content:center;align-items:flex-start}
img,video{display:block;max-width:100%;height:auto;max-height:calc(100vh - 8rem);margin:0 auto;border-radius:8px}
.image a{width:100%}
.image img{background:repeating-conic-gradient(#f3f3f3 0 25%,#e0e0e0 0 50%) 0 0/20px 20px}
.image main,.video main{align-items:center}
audio{width:min(100%,36rem)}
object{width:100%;height:100%;min-height:70vh;border:0}
.pdf{height:100%}.pdf main{flex:1;min-height:0;padding:0}.pdf object p{padding:2rem}
pre{width:100%;max-width:60rem;margin:0;padding:1rem 1.15rem;border:1px solid var(--line);border-radius:10px;background:var(--tint);overflow-x:auto;font:.875rem/1.55 ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace;tab-size:2;white-space:pre-wrap;overflow-wrap:anywhere}
`
