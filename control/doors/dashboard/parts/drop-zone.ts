/** Where files are let go. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { icon } from './charts.ts'

export interface DropZone {
  readonly name: string
  readonly accept?: string
  readonly title: string
  readonly hint: Content
  readonly multiple?: boolean
}

/** A file input that looks like the place to let go; the input itself lies over it, so keyboards and taps reach it. */
export function dropZone(zone: DropZone): Html {
  return html`<label class="drop" data-zone>
    ${icon('upload')}
    <strong>${zone.title}</strong>
    <span class="hint">${zone.hint}</span>
    <input type="file" name="${zone.name}"${zone.accept ? html` accept="${zone.accept}"` : ''}${
      zone.multiple ? html` multiple` : ''
    }>
  </label>`
}
