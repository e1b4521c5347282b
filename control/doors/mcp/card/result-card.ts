/**
 * The card that clients with room for pages (MCP Apps) show for a publish: a preview, the address, what to do with it.
 * Everything it shows comes from the answer of the tool, which clients without such room show as text.
 */
import type { ReadResourceResult, Resource } from '@modelcontextprotocol/server'
import { siteHost } from '../../../../shared/http/hosts.ts'
import { addressOf } from '../../../../shared/settings/settings.ts'
import { html } from '../../../../shared/pages/html.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { CARD_SCRIPT, CARD_STYLE } from './card-parts.ts'

/** Its media type says that it is such a page. */
const CARD_TYPE = 'text/html;profile=mcp-app'
export const CARD_URI = 'ui://dropway/result'

type CardSettings = Pick<ControlConfig, 'look' | 'sitesDomain' | 'publicPort' | 'baseUrl'>

export function cardResource({ look }: Pick<CardSettings, 'look'>): Resource {
  return { uri: CARD_URI, name: 'result', title: `${look.name}: what was published`, mimeType: CARD_TYPE }
}

export function readCard(settings: CardSettings): ReadResourceResult {
  return {
    contents: [{ uri: CARD_URI, mimeType: CARD_TYPE, text: cardPage(settings), _meta: { ui: cardTerms(settings) } }],
  }
}

/** It loads nothing and calls nobody; it shows pages of drops in a frame, and nothing else. */
function cardTerms({ sitesDomain, publicPort }: CardSettings): Record<string, unknown> {
  const drops = addressOf({ publicPort }, siteHost('*', sitesDomain))
  return { csp: { connectDomains: [], resourceDomains: [], frameDomains: [drops] }, prefersBorder: true }
}

function cardPage({ look, baseUrl }: CardSettings): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>${look.name}</title>
        <style>
          ${CARD_STYLE}
        </style>
      </head>
      <body data-service="${baseUrl}">
        <main hidden>
          <iframe title="Preview" sandbox="allow-scripts" tabindex="-1"></iframe>
          <h1></h1>
          <p><a class="address" target="_blank" rel="noopener"></a></p>
          <p class="facts"></p>
          <p class="actions">
            <button type="button" data-open="page">Open</button>
            <button type="button" data-open="sharing">Share</button>
            <button type="button" data-open="versions">Versions</button>
          </p>
        </main>
        <script>
          ${CARD_SCRIPT}
        </script>
      </body>
    </html>`.text
}
