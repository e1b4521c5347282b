/** A QR code as one SVG path. Dark on white in both colour schemes: cameras want it so. */
import { encode } from 'uqr'
import { html, type Html } from '../../../../shared/pages/html.ts'

export function qrCode(text: string): Html {
  const { data, size } = encode(text, { border: 2, ecc: 'M' })
  let path = ''
  data.forEach((row, y) => row.forEach((dark, x) => (path += dark ? `M${x} ${y}h1v1h-1z` : '')))
  return html`<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="QR code of the address"
      shape-rendering="crispEdges">
    <path fill="#10211e" d="${path}"/>
  </svg>`
}
