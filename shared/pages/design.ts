/**
 * The design system: one accent, cool paper, generous space. Everything is a CSS custom property,
 * so that pages of the dashboard, of the edge and of Markdown drops look like one house.
 * All text colours meet WCAG AA on every surface they are used on, in light and in dark.
 */
export const tokensCss = `
:root{color-scheme:light dark;
--font:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",Ubuntu,Cantarell,"Helvetica Neue",Arial,sans-serif;
--mono:ui-monospace,SFMono-Regular,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace;
--text-s:.875rem;--text-m:1rem;--text-l:1.1875rem;--text-xl:clamp(1.375rem,1.2rem + .8vw,1.75rem);--text-xxl:clamp(2.125rem,1.45rem + 3.1vw,3.5rem);
--space-1:.25rem;--space-2:.5rem;--space-3:.75rem;--space-4:1rem;--space-5:1.5rem;--space-6:2.25rem;--space-7:3.5rem;--space-8:5.5rem;
--radius-s:.375rem;--radius-m:.625rem;--radius-l:1rem;--measure:42rem;--page:68rem;
--paper:#f6f9f8;--surface:#fff;--sunken:#ecf2f0;--ink:#10211e;--ink-soft:#475955;--line:#d8e2df;--line-strong:#748581;
--accent:#0a6864;--accent-strong:#064a47;--accent-soft:#dcf0ec;--on-accent:#fff;
--good:#1a6638;--good-soft:#def2e4;--warn:#7d4b00;--warn-soft:#fcefd6;--bad:#ad231b;--bad-soft:#fde8e5;
--shadow:0 1px 2px rgb(16 33 30/.05),0 12px 32px -12px rgb(16 33 30/.14)}
@media (prefers-color-scheme:dark){:root{
--paper:#0d1514;--surface:#14201e;--sunken:#0a100f;--ink:#e7f0ee;--ink-soft:#a6b8b4;--line:#263835;--line-strong:#748984;
--accent:#62d2c5;--accent-strong:#9be9df;--accent-soft:#12332f;--on-accent:#04211d;
--good:#7bd89c;--good-soft:#11301e;--warn:#f2c070;--warn-soft:#35270f;--bad:#ff9f94;--bad-soft:#3b1814;
--shadow:0 1px 2px rgb(0 0 0/.4),0 16px 40px -16px rgb(0 0 0/.7)}}
`

export const baseCss = `
*,*::before,*::after{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-padding-top:var(--space-5)}
body{margin:0;min-height:100vh;min-height:100dvh;background:var(--paper);color:var(--ink);font:400 var(--text-m)/1.6 var(--font);overflow-wrap:break-word;-webkit-font-smoothing:antialiased}
h1,h2,h3{margin:0;overflow-wrap:anywhere;line-height:1.2;font-weight:650;letter-spacing:-.018em;text-wrap:balance}
h1{font-size:var(--text-xl)}h2{font-size:var(--text-l)}h3{font-size:var(--text-m)}
p,ul,ol,dl,dd,figure,pre{margin:0}p,li,dd,label{overflow-wrap:anywhere}p{text-wrap:pretty}
a{color:var(--accent);text-underline-offset:.2em;text-decoration-thickness:.0625em}
a:hover{color:var(--accent-strong);text-decoration-thickness:.125em}
:focus-visible{outline:.1875rem solid var(--accent);outline-offset:.1875rem;border-radius:var(--radius-s)}
code,pre,kbd,samp{font-family:var(--mono);font-size:.9em}
pre{overflow-x:auto;padding:var(--space-4);background:var(--sunken);border:1px solid var(--line);border-radius:var(--radius-m);line-height:1.55}
pre code{font-size:.875rem}
img,svg,iframe{max-width:100%}svg{display:block}
hr{border:0;border-top:1px solid var(--line);margin:0}
button,input,select,textarea{font:inherit;color:inherit}
[hidden]{display:none!important}
.visually-hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media (prefers-reduced-motion:no-preference){a,.button,.card,.drop{transition:background-color .15s,border-color .15s,color .15s,box-shadow .15s}}
@media (prefers-reduced-motion:reduce){*,*::before,*::after{animation:none!important;transition:none!important}}
`

/** Controls that stand-alone pages need as well: buttons, fields, notices, the brand. */
export const controlsCss = `
.brand{display:inline-flex;align-items:center;gap:var(--space-2);color:var(--ink);font-weight:680;letter-spacing:-.02em;font-size:1.125rem;text-decoration:none}
.brand:hover{color:var(--ink)}.brand svg{width:1.5rem;height:1.5rem;color:var(--accent);flex:none}.brand img{height:1.75rem;width:auto;max-width:9rem;object-fit:contain}
.button{display:inline-flex;align-items:center;justify-content:center;gap:var(--space-2);min-height:2.75rem;padding:.5rem 1.125rem;border:1px solid var(--line-strong);border-radius:var(--radius-m);background:var(--surface);color:var(--ink);font-weight:560;line-height:1.25;text-align:center;text-decoration:none;cursor:pointer}
.button:hover{border-color:var(--accent);color:var(--accent-strong)}
.button.primary{background:var(--accent);border-color:var(--accent);color:var(--on-accent)}
.button.primary:hover{background:var(--accent-strong);border-color:var(--accent-strong);color:var(--on-accent)}
.button.danger{border-color:var(--bad);color:var(--bad)}.button.danger:hover{background:var(--bad);color:var(--surface)}
.button.quiet{border-color:transparent;background:transparent;color:var(--accent)}.button.quiet:hover{background:var(--accent-soft)}
.button.small{min-height:2.25rem;padding:.25rem .75rem;font-size:var(--text-s)}
.button[disabled]{opacity:.55;cursor:not-allowed}
.field{display:grid;gap:.375rem}
.field>label,.field>.label{font-weight:560}
.hint{color:var(--ink-soft);font-size:var(--text-s)}
.input{width:100%;min-height:2.75rem;padding:.5rem .75rem;border:1px solid var(--line-strong);border-radius:var(--radius-m);background:var(--surface)}
select.input{contain:paint}
textarea.input{min-height:8rem;resize:vertical;line-height:1.5}
.input[aria-invalid=true]{border-color:var(--bad)}
.notice{padding:var(--space-3) var(--space-4);border-radius:var(--radius-m);border:1px solid var(--line);border-inline-start:.25rem solid var(--accent);background:var(--surface)}
.notice.good{border-inline-start-color:var(--good)}.notice.warn{border-inline-start-color:var(--warn)}.notice.bad{border-inline-start-color:var(--bad)}
.stack{display:grid;gap:var(--space-4);align-content:start}.stack>*{min-width:0}
.cluster{display:flex;flex-wrap:wrap;gap:var(--space-3);align-items:center}
.soft{color:var(--ink-soft)}
`

export const standaloneCss = `
body.standalone{display:grid;grid-template-rows:auto 1fr auto;gap:var(--space-5);padding:var(--space-5) clamp(1rem,5vw,3rem)}
.standalone main{align-self:center;justify-self:center;width:100%;max-width:30rem;display:grid;gap:var(--space-4);padding-block:var(--space-5)}
.standalone main>*{min-width:0}
.standalone .art{color:var(--accent);margin-bottom:var(--space-2)}.standalone .art svg{width:8.5rem;height:auto}
.standalone h1{font-size:clamp(1.75rem,1.4rem + 1.8vw,2.5rem)}
.standalone .code{font:600 var(--text-s)/1 var(--mono);letter-spacing:.06em;color:var(--accent)}
.standalone .lead{font-size:var(--text-l);color:var(--ink-soft)}
.standalone footer{color:var(--ink-soft);font-size:var(--text-s)}
.standalone .button{width:fit-content}.standalone form .button{width:100%}
.standalone form .button.quiet{width:fit-content;min-height:2.25rem;padding-inline:0}.standalone form .button.quiet:hover{background:none;text-decoration:underline}
`

/** Our comments and spaces in the style sheets are for us; visitors get them without. */
export function compact(css: string): string {
  return css
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};]) ?/g, '$1')
    .replace(/([:,]) /g, '$1')
    .replaceAll(';}', '}')
    .trim()
}
