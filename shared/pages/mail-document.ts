/** The HTML part of a mail. Mail clients know neither style sheets nor custom properties: styles are inline. */
import { html, type Content } from './html.ts'

export interface MailDocument {
  /** The line that inboxes show after the subject. */
  readonly preview: string
  readonly heading: string
  readonly paragraphs: readonly Content[]
  readonly action?: { readonly label: string; readonly url: string }
  /** Why the reader gets this mail. */
  readonly footer: Content
}

const FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif"

export function mailDocument(mail: MailDocument): string {
  return html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light"><title>${mail.heading}</title></head>
<body style="margin:0;background:#f6f9f8;color:#10211e;${FONT};font-size:16px;line-height:1.6">
<div style="display:none;max-height:0;overflow:hidden">${mail.preview}</div>
<table role="presentation" width="100%" cellpadding="0" cellspacing="0"><tr><td align="center" style="padding:32px 16px">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:520px;background:#ffffff;border:1px solid #d8e2df;border-radius:16px"><tr><td style="padding:32px;${FONT}">
<p style="margin:0 0 24px;font-weight:700;color:#0a6864">Dropway</p>
<h1 style="margin:0 0 16px;font-size:22px;line-height:1.25">${mail.heading}</h1>
${mail.paragraphs.map((paragraph) => html`<p style="margin:0 0 16px">${paragraph}</p>`)}
${mail.action && actionBlock(mail.action)}
<p style="margin:24px 0 0;padding-top:16px;border-top:1px solid #d8e2df;font-size:13px;color:#475955">${mail.footer}</p>
</td></tr></table>
</td></tr></table>
</body>
</html>
`.text
}

function actionBlock(action: { label: string; url: string }): Content {
  return html`<p style="margin:24px 0"><a href="${action.url}" style="display:inline-block;padding:12px 20px;border-radius:10px;background:#0a6864;color:#ffffff;text-decoration:none;font-weight:600">${action.label}</a></p>
<p style="margin:0 0 16px;font-size:13px;color:#475955">Or open this address: <br><a href="${action.url}" style="color:#0a6864;word-break:break-all">${action.url}</a></p>`
}
