/** A whole page that we write around someone's content. Everything inline: no script, no request of ours. */
import { escape } from '../../../../shared/pages/html.ts'

export interface WrittenPage {
  readonly title: string
  readonly description?: string
  readonly style: string
  /** Class of the body, for the style. */
  readonly kind?: string
  /** Lines of HTML. */
  readonly body: readonly string[]
}

export function writtenPage({ title, description = '', style, kind, body }: WrittenPage): string {
  const said = escape(description)
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    `<title>${escape(title)}</title>`,
    `<meta property="og:title" content="${escape(title)}">`,
    '<meta property="og:type" content="article">',
    '<meta name="twitter:card" content="summary">',
    ...(description === ''
      ? []
      : [`<meta name="description" content="${said}">`, `<meta property="og:description" content="${said}">`]),
    `<style>${style}</style>`,
    '</head>',
    kind === undefined ? '<body>' : `<body class="${kind}">`,
    ...body,
    '</body>',
    '</html>',
    '',
  ].join('\n')
}
