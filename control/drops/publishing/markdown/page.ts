/** The page around rendered Markdown. */
import { writtenPage } from '../html/written-page.ts'

export function markdownPage({
  title,
  description,
  body,
}: {
  title: string
  description: string
  body: string
}): string {
  return writtenPage({
    title,
    description,
    style: STYLE,
    body: ['<main class="page">', body.trimEnd(), '</main>'],
  })
}

const STYLE = `
:root{
  --paper:#fdfcfa;--ink:#1f2328;--soft:#59606a;--line:#e4e1db;--tint:#f4f2ee;--link:#0b57c2;--mark:#fff3bf;
  --code:#24292f;--keyword:#a3264f;--string:#136f3a;--number:#8a4b00;--title:#5a35b8;--comment:#68707a;--built:#0b5f86;
  --serif:"Iowan Old Style","Palatino Linotype",Palatino,"Source Serif 4","Noto Serif",Georgia,serif;
  --sans:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans",sans-serif;
  --mono:ui-monospace,"SF Mono",SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;
}
@media (prefers-color-scheme:dark){:root{
  --paper:#15171a;--ink:#dfe1e4;--soft:#9ba3ad;--line:#2e3238;--tint:#1e2125;--link:#8ab8ff;--mark:#4d4213;
  --code:#dfe1e4;--keyword:#ff9bb5;--string:#8fd6a4;--number:#f0b979;--title:#c3abff;--comment:#8d96a0;--built:#84cdf0;
}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-padding-top:1.5rem}
body{margin:0;background:var(--paper);color:var(--ink);font:1.0625rem/1.68 var(--serif);text-rendering:optimizeLegibility;overflow-wrap:break-word}
.page{max-width:42rem;margin:0 auto;padding:clamp(2rem,7vw,5rem) clamp(1.15rem,5vw,2rem) 6rem}
.page>:first-child{margin-top:0}
h1,h2,h3,h4,h5,h6{font-family:var(--sans);font-weight:680;line-height:1.22;letter-spacing:-.012em;margin:2.4em 0 .7em;text-wrap:balance}
h1{font-size:clamp(1.9rem,1.5rem + 2vw,2.6rem);font-weight:740;letter-spacing:-.024em;margin:2em 0 .6em}
h2{font-size:1.5rem;padding-bottom:.32em;border-bottom:1px solid var(--line)}
h3{font-size:1.22rem}h4{font-size:1.06rem}h5,h6{font-size:.95rem;color:var(--soft)}
h2+h3,h3+h4{margin-top:1.1em}
.anchor{margin-left:.35em;color:var(--soft);font-weight:400;text-decoration:none;opacity:0;transition:opacity .12s}
:is(h1,h2,h3,h4,h5,h6):hover .anchor,.anchor:focus-visible{opacity:.75}
p,ul,ol,dl,blockquote,pre,table,figure,details{margin:0 0 1.15em}
a{color:var(--link);text-decoration-thickness:.07em;text-underline-offset:.16em}
a:hover{text-decoration-thickness:.13em}
:focus-visible{outline:2px solid var(--link);outline-offset:2px;border-radius:2px}
ul,ol{padding-left:1.45em}li{margin:.28em 0}li>ul,li>ol{margin:.28em 0}li::marker{color:var(--soft)}
li:has(>input[type=checkbox]:first-child),li:has(>p:first-child>input[type=checkbox]:first-child){list-style:none}
li>input[type=checkbox]:first-child,li>p:first-child>input[type=checkbox]:first-child{width:1em;height:1em;margin:0 .45em 0 -1.4em;vertical-align:-.1em;accent-color:var(--link)}
blockquote{margin-left:0;margin-right:0;padding:.1em 0 .1em 1.2em;border-left:3px solid var(--line);color:var(--soft)}
blockquote>:last-child{margin-bottom:0}
code,kbd,samp{font-family:var(--mono);font-size:.855em}
:not(pre)>code{padding:.14em .36em;border-radius:5px;background:var(--tint);color:var(--code)}
pre{padding:1em 1.15em;border:1px solid var(--line);border-radius:10px;background:var(--tint);color:var(--code);overflow-x:auto;line-height:1.55;tab-size:2}
pre code{font-size:.86rem}
kbd{padding:.1em .4em;border:1px solid var(--line);border-bottom-width:2px;border-radius:5px;background:var(--tint)}
mark{background:var(--mark);color:inherit;padding:0 .15em;border-radius:3px}
img,video,svg,iframe{max-width:100%}img,video{height:auto;border-radius:8px}
figcaption{font-size:.9rem;color:var(--soft)}
hr{height:1px;margin:2.8em 0;border:0;background:var(--line)}
table{display:block;width:max-content;max-width:100%;overflow-x:auto;border-collapse:collapse;font:.94rem/1.5 var(--sans);font-variant-numeric:tabular-nums}
th,td{padding:.5em .85em;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{font-weight:650;border-bottom-width:2px;white-space:nowrap}
[align=right]{text-align:right}[align=center]{text-align:center}
tbody tr:last-child td{border-bottom:0}
summary{cursor:pointer;font-family:var(--sans)}
sup{line-height:0;font-size:.72em}
.footnotes{margin-top:3.5em;padding-top:1.2em;border-top:1px solid var(--line);font-size:.92rem;color:var(--soft)}
.sr-only{position:absolute;width:1px;height:1px;margin:-1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
:target{scroll-margin-top:1.5rem}.footnotes li:target,sup a:target{background:var(--mark)}
.hljs-keyword,.hljs-selector-tag,.hljs-doctag,.hljs-template-tag,.hljs-deletion{color:var(--keyword)}
.hljs-string,.hljs-regexp,.hljs-addition,.hljs-attribute,.hljs-symbol{color:var(--string)}
.hljs-number,.hljs-literal,.hljs-variable,.hljs-template-variable,.hljs-link{color:var(--number)}
.hljs-title,.hljs-section,.hljs-selector-id,.hljs-selector-class{color:var(--title)}
.hljs-comment,.hljs-quote,.hljs-meta{color:var(--comment)}.hljs-comment,.hljs-emphasis{font-style:italic}
.hljs-type,.hljs-built_in,.hljs-attr,.hljs-name,.hljs-property,.hljs-bullet{color:var(--built)}
.hljs-strong{font-weight:700}
@media (prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
@media print{
  :root{--paper:#fff;--ink:#000;--soft:#444;--line:#bbb;--tint:#f6f6f6;--link:#000;--code:#000}
  body{font-size:11pt}.page{max-width:none;padding:0}.anchor{display:none}
  pre,blockquote,table,img,figure{break-inside:avoid}pre{white-space:pre-wrap}h1,h2,h3,h4{break-after:avoid}p,li{orphans:3;widows:3}
  a[href^="http"]::after{content:" (" attr(href) ")";font-size:.85em;color:var(--soft);overflow-wrap:anywhere}
}
`
