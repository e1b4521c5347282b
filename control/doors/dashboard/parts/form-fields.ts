/** Form parts with label, hint and error wired to each other. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'

export interface TextField {
  readonly name: string
  readonly label: string
  readonly value?: string
  readonly type?: 'text' | 'email' | 'password' | 'url' | 'search' | 'date' | 'time' | 'tel'
  readonly hint?: Content
  readonly required?: boolean
  readonly autocomplete?: string
  readonly placeholder?: string
  readonly minlength?: number
  readonly maxlength?: number
  readonly pattern?: string
  readonly rows?: number
  /** Needed when a page has two fields of one name. */
  readonly id?: string
  readonly autofocus?: boolean
}

export function textField(field: TextField): Html {
  const id = field.id ?? field.name
  const hintId = `${id}-hint`
  const attributes = [
    html` id="${id}" name="${field.name}"`,
    field.required && html` required`,
    field.autocomplete !== undefined && html` autocomplete="${field.autocomplete}"`,
    field.placeholder !== undefined && html` placeholder="${field.placeholder}"`,
    field.minlength !== undefined && html` minlength="${field.minlength}"`,
    field.maxlength !== undefined && html` maxlength="${field.maxlength}"`,
    field.pattern !== undefined && html` pattern="${field.pattern}"`,
    field.hint !== undefined && html` aria-describedby="${hintId}"`,
    field.autofocus && html` autofocus`,
  ]
  return html`
    <div class="field">
      <label for="${id}">${field.label}</label>
      ${
        field.rows === undefined
          ? html`<input class="input" type="${field.type ?? 'text'}" value="${field.value ?? ''}"${attributes}>`
          : html`<textarea class="input" rows="${field.rows}"${attributes}>${leadingNewlineSafe(field.value ?? '')}</textarea>`
      }
      ${field.hint !== undefined && html`<span class="hint" id="${hintId}">${field.hint}</span>`}
    </div>
  `
}

/** HTML swallows a newline right after `<textarea>`. */
function leadingNewlineSafe(text: string): string {
  return text.startsWith('\n') ? `\n${text}` : text
}

export function checkbox(field: {
  name: string
  label: Content
  hint?: Content
  checked: boolean
  disabled?: boolean
}): Html {
  return html`<label class="check">
    <input type="checkbox" name="${field.name}" value="on"${field.checked ? html` checked` : ''}${
      field.disabled ? html` disabled` : ''
    }>
    <span>${field.label}${field.hint !== undefined && html`<span class="hint">${field.hint}</span>`}</span>
  </label>`
}

export function selectField(field: {
  name: string
  label: string
  value: string
  options: readonly (readonly [value: string, label: string])[]
  hint?: Content
  id?: string
  autocomplete?: string
  disabled?: boolean
}): Html {
  const id = field.id ?? field.name
  const hintId = `${id}-hint`
  const attributes = [
    html` id="${id}" name="${field.name}"`,
    field.autocomplete !== undefined && html` autocomplete="${field.autocomplete}"`,
    field.hint !== undefined && html` aria-describedby="${hintId}"`,
    field.disabled && html` disabled`,
  ]
  return html`
    <div class="field">
      <label for="${id}">${field.label}</label>
      <select class="input"${attributes}>
        ${field.options.map(
          ([value, label]) =>
            html`<option value="${value}"${value === field.value ? html` selected` : ''}>${label}</option>`,
        )}
      </select>
      ${field.hint !== undefined && html`<span class="hint" id="${hintId}">${field.hint}</span>`}
    </div>
  `
}

export function problemNotice(problem: string | undefined): Html | undefined {
  return problem === undefined ? undefined : html`<p class="notice bad" role="alert">${problem}</p>`
}
