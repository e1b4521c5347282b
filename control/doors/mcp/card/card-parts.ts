/** Style and script of the result card, as texts: the card is one page that loads nothing. */
import { raw } from '../../../../shared/pages/html.ts'

export const CARD_STYLE = raw(`
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif }
body { margin: 0; padding: 14px; background: transparent }
main { display: grid; gap: 6px }
main[hidden] { display: none }
iframe { width: 100%; height: 180px; border: 1px solid color-mix(in srgb, currentColor 18%, transparent); border-radius: 10px; background: #fff; pointer-events: none }
h1 { margin: 6px 0 0; font-size: 17px }
p { margin: 0 }
.address { color: inherit; overflow-wrap: anywhere }
.facts { opacity: .7; font-size: 13px }
.actions { display: flex; flex-wrap: wrap; gap: 8px; margin-top: 6px }
button { font: inherit; padding: 6px 12px; border-radius: 8px; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); background: transparent; color: inherit; cursor: pointer }
`)

/** Speaks the protocol of MCP Apps with the client around it: says hello, waits for the answer of the tool, shows it. */
export const CARD_SCRIPT = raw(`
(() => {
  const at = (selector) => document.querySelector(selector)
  const waiting = new Map()
  let last = 0
  let facts
  const post = (message) => parent.postMessage({ jsonrpc: '2.0', ...message }, '*')
  const ask = (method, params) => new Promise((resolve) => {
    waiting.set(++last, resolve)
    post({ id: last, method, params })
  })
  const counted = (count, word) => count + ' ' + word + (count === 1 ? '' : 's')
  function show(result) {
    facts = result?.structuredContent
    if (typeof facts?.url !== 'string' || !facts.url.startsWith('https://')) return
    at('h1').textContent = facts.slug ?? 'Published'
    at('.address').textContent = facts.url.slice('https://'.length)
    at('.address').href = facts.url
    at('.facts').textContent = [
      facts.live === false ? 'preview, not live' : 'version ' + facts.version,
      typeof facts.files === 'number' ? counted(facts.files, 'file') : '',
      facts.access_mode ?? 'public',
      facts.warnings?.length > 0 ? counted(facts.warnings.length, 'warning') : '',
    ].filter(Boolean).join(' · ')
    if (facts.access_mode) at('iframe').remove()
    else at('iframe').src = facts.url
    at('main').hidden = false
    const { scrollWidth: width, scrollHeight: height } = document.documentElement
    post({ method: 'ui/notifications/size-changed', params: { width, height } })
  }
  function addressOf(what) {
    return what === 'page' ? facts.url : document.body.dataset.service + '/sites/' + facts.id + '/' + what
  }
  document.addEventListener('click', (event) => {
    const pressed = event.target.closest('[data-open], a')
    if (!pressed || !facts) return
    event.preventDefault()
    ask('ui/open-link', { url: addressOf(pressed.dataset.open ?? 'page') })
  })
  addEventListener('message', (event) => {
    if (event.source !== parent || typeof event.data !== 'object' || event.data === null) return
    const { id, method, params, result } = event.data
    if (method === 'ui/notifications/tool-result') show(params)
    else if (method === 'ping' || method === 'ui/resource-teardown') post({ id, result: {} })
    else if (method === undefined && waiting.has(id)) {
      waiting.get(id)(result)
      waiting.delete(id)
    }
  })
  ask('ui/initialize', {
    protocolVersion: '2026-01-26',
    appInfo: { name: 'result-card', version: '1.0.0' },
    appCapabilities: {},
  }).then(() => post({ method: 'ui/notifications/initialized' }))
})()
`)
