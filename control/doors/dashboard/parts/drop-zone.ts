/** Where files are let go, and what a publish form shows while they travel. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { plans, type PlanName } from '../../../ground/terms/plans.ts'
import { bytesInWords } from '../../../../shared/values/sizes.ts'
import { MAX_RETURNED_BYTES } from '../frame/typed-fields.ts'
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

/** Takes the place of the zone while files are sent. */
export function publishProgress(): Html {
  return html`
    <div class="sending stack" data-progress hidden>
      <p role="status"></p>
      <progress max="100" value="0" aria-label="Upload"></progress>
      <p class="cluster spread">
        <span class="hint" data-figures></span>
        <button class="button small" type="button" data-cancel hidden>Cancel</button>
      </p>
    </div>
  `
}

/** What a script must know to judge files before it sends them: attributes of a publish form. */
export function publishTerms(plan: PlanName | undefined, siteId?: string): Html {
  if (plan === undefined)
    return html`data-publish data-takes="page" data-cap="${plans.anonymous.uploadBytes}"
      data-account-cap="${plans.free.uploadBytes}"`
  return html`data-publish data-takes="anything" data-cap="${plans[plan].uploadBytes}"
    data-files="${plans[plan].filesPerVersion}"
    data-check="/sites/check"${siteId !== undefined && html` data-site="${siteId}"`}`
}

/** What pasted text is taken for, and the text: it is read while it arrives, so the choice comes first. */
export function pasteField(field: { text: Content; format?: string; placeholder: string; previewed?: boolean }): Html {
  const option = (value: string, label: string): Html =>
    html`<option value="${value}"${value === (field.format ?? '') && html` selected`}>${label}</option>`
  return html`
    <div class="field inline">
      <label for="format">Publish the text as</label>
      <select class="input" id="format" name="format">
        ${option('', 'what it looks like')}
        ${option('markdown', 'Markdown')}
        ${option('html', 'HTML')}
      </select>
    </div>
    <div class="field">
      <label class="visually-hidden" for="text">HTML or Markdown</label>
      <textarea class="input editor${field.text !== '' && ' tall'}" id="text" name="text" spellcheck="false"
          placeholder="${field.placeholder}"${field.previewed && html` data-preview-source`}>${field.text}</textarea>
      <noscript>
        <p class="hint">
          Keep a copy of a text longer than ${bytesInWords(MAX_RETURNED_BYTES)}: without JavaScript, a form that
          is not accepted cannot bring it back.
        </p>
      </noscript>
    </div>
  `
}
