/** What a template is: a form, and a page made from what was filled in. The page is an ordinary drop afterwards. */
import { html, raw, type Content, type Html } from '../../../../../shared/pages/html.ts'

export interface TemplateField {
  readonly name: string
  readonly label: string
  readonly kind: 'text' | 'long' | 'lines' | 'url' | 'email' | 'date' | 'time' | 'colour'
  readonly hint?: string
  readonly required?: boolean
}

export type TemplateValues = Readonly<Record<string, string>>

export interface Template {
  readonly name: string
  readonly title: string
  readonly summary: string
  readonly fields: readonly TemplateField[]
  /** Shown in the gallery and as the first state of the form. */
  readonly sample: TemplateValues
  render(values: TemplateValues): string
}

/** A form field must not become a hosting plan. */
export const MAX_FIELD_CHARS = 5000

/** Only the template's own fields, trimmed and bounded; whatever else was sent is dropped. */
export function readValues(template: Template, form: URLSearchParams): TemplateValues {
  return Object.fromEntries(
    template.fields.map((field) => [
      field.name,
      (form.get(field.name) ?? '').replaceAll('\r\n', '\n').trim().slice(0, MAX_FIELD_CHARS),
    ]),
  )
}

/** `a | b | c` per line → trimmed parts. */
export function linesOf(text: string | undefined): string[][] {
  return (text ?? '')
    .split('\n')
    .map((line) => line.split('|').map((part) => part.trim()))
    .filter((parts) => parts[0] !== '')
}

export function paragraphsOf(text: string | undefined): Html[] {
  return (text ?? '')
    .split(/\n{2,}/)
    .filter((paragraph) => paragraph.trim() !== '')
    .map((paragraph) => html`<p>${paragraph}</p>`)
}

export interface Colour {
  readonly label: string
  readonly light: string
  readonly dark: string
}

/** Accents that read well on both grounds. */
const TIDE: Colour = { label: 'Tide', light: '#0a6864', dark: '#62d2c5' }

export const COLOURS: ReadonlyMap<string, Colour> = new Map([
  ['tide', TIDE],
  ['ink', { label: 'Ink', light: '#2b3a8c', dark: '#a9b6ff' }],
  ['plum', { label: 'Plum', light: '#7a2a6b', dark: '#f0a6df' }],
  ['ember', { label: 'Ember', light: '#9c3a12', dark: '#ffb08a' }],
  ['moss', { label: 'Moss', light: '#3d6018', dark: '#b5dd86' }],
])

export interface TemplateDocument {
  readonly title: string
  readonly description: string
  readonly colour: string | undefined
  readonly css: string
  readonly body: Content
}

export function templateDocument(page: TemplateDocument): string {
  const colour = COLOURS.get(page.colour ?? '') ?? TIDE
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>${page.title}</title>
<meta name="description" content="${page.description}">
<meta property="og:title" content="${page.title}">
<meta property="og:description" content="${page.description}">
<meta name="color-scheme" content="light dark">
<style>${raw(baseCss(colour) + page.css)}</style>
</head>
<body>
${page.body}
</body>
</html>
`.text
}

function baseCss(colour: Colour): string {
  return `:root{color-scheme:light dark;
  --paper:#fbfaf8;--ink:#1b1d1f;--soft:#585d62;--line:#e3e0da;--card:#fff;--accent:${colour.light};--on-accent:#fff}
@media (prefers-color-scheme:dark){:root{
  --paper:#131416;--ink:#eceae6;--soft:#a9adb2;--line:#2c2f33;--card:#1b1d20;--accent:${colour.dark};--on-accent:#101214}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
  font:400 1.0625rem/1.65 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",Arial,sans-serif;
  overflow-wrap:break-word}
h1,h2,h3{line-height:1.15;letter-spacing:-.02em;margin:0;text-wrap:balance}
p{margin:0 0 1em}
a{color:var(--accent);text-underline-offset:.2em}
:focus-visible{outline:3px solid var(--accent);outline-offset:3px}
img{max-width:100%;height:auto;display:block}ul{margin:0;padding:0;list-style:none}
`
}
