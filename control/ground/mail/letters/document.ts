/**
 * The HTML part of a mail. Many mail clients know neither style sheets nor custom properties: the styles are inline and
 * those of light paper. Where a style sheet is read, it turns the page dark for readers who want that.
 */
import { html, type Content } from '../../../../shared/pages/html.ts'
import type { Look } from '../../../../shared/pages/look.ts'

/** One of the things that a mail is about. */
export interface MailItem {
  readonly name: string
  readonly url: string
  readonly note: string
}

export interface MailDocument {
  /** The line that inboxes show after the subject. */
  readonly preview: string
  readonly heading: string
  readonly paragraphs: readonly Content[]
  /** After the first paragraph. */
  readonly items?: readonly MailItem[]
  readonly action?: { readonly label: string; readonly url: string }
  /** Why the reader gets this mail. */
  readonly footer: Content
}

const FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif"

/** Beats the inline styles, where it is read at all. */
const darkOf = ({ accent, onAccent }: Look['palette']['dark']): string => `@media (prefers-color-scheme:dark){
.dw-page{background:#0c1513 !important;color:#e6efec !important}
.dw-card{background:#14201d !important;border-color:#2b3b37 !important}
.dw-name,.dw-link{color:${accent} !important}
.dw-soft{color:#a3b5b0 !important;border-color:#2b3b37 !important}
.dw-item{background:#1b2926 !important}
.dw-button{background:${accent} !important;color:${onAccent} !important}
}`

export function mailDocument(mail: MailDocument, { name, palette }: Look): string {
  const { accent } = palette.light
  const [first, ...others] = mail.paragraphs
  return html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark"><title>${mail.heading}</title><style>${darkOf(palette.dark)}</style></head>
<body class="dw-page" style="margin:0;background:#f6f9f8;color:#10211e;${FONT};font-size:16px;line-height:1.6">
<div style="display:none;max-height:0;overflow:hidden">${mail.preview}</div>
<table role="presentation" width="100%" cellpadding="0" cellspacing="0"><tr><td align="center" style="padding:32px 16px">
<table role="presentation" class="dw-card" width="100%" cellpadding="0" cellspacing="0" style="max-width:520px;background:#ffffff;border:1px solid #d8e2df;border-radius:16px"><tr><td style="padding:32px;${FONT}">
<p class="dw-name" style="margin:0 0 24px;font-weight:700;color:${accent}">${name}</p>
<h1 style="margin:0 0 16px;font-size:22px;line-height:1.25;overflow-wrap:anywhere">${mail.heading}</h1>
${first && paragraphBlock(first)}
${mail.items?.map((item) => itemBlock(item, accent))}
${others.map(paragraphBlock)}
${mail.action && actionBlock(mail.action, accent)}
<p class="dw-soft" style="margin:24px 0 0;padding-top:16px;border-top:1px solid #d8e2df;font-size:13px;color:#475955">${mail.footer}</p>
</td></tr></table>
</td></tr></table>
</body>
</html>
`.text
}

function paragraphBlock(paragraph: Content): Content {
  return html`<p style="margin:0 0 16px;overflow-wrap:anywhere">${paragraph}</p>`
}

function itemBlock({ name, url, note }: MailItem, accent: string): Content {
  return html`<p class="dw-item" style="margin:0 0 12px;padding:12px 16px;border-radius:10px;background:#eef4f2"><strong>${name}</strong><br><a class="dw-link" href="${url}" style="color:${accent};word-break:break-all">${url}</a><br><span class="dw-soft" style="font-size:14px;color:#475955">${note}</span></p>`
}

function actionBlock(action: { label: string; url: string }, accent: string): Content {
  return html`<p style="margin:24px 0"><a class="dw-button" href="${action.url}" style="display:inline-block;padding:12px 20px;border-radius:10px;background:${accent};color:#ffffff;text-decoration:none;font-weight:600">${action.label}</a></p>
<p class="dw-soft" style="margin:0 0 16px;font-size:13px;color:#475955">Or open this address: <br><a class="dw-link" href="${action.url}" style="color:${accent};word-break:break-all">${action.url}</a></p>`
}
