/** Form parts with label, hint and error wired to each other, and forms that remember what was typed. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { csrfField, type Viewer } from '../frame/layout.ts'

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
  /** What follows the field in its frame, such as the domain of an address. */
  readonly suffix?: string
  /** Text that is a name for machines: no capital letters, no corrections. */
  readonly verbatim?: boolean
}

interface CheckField {
  readonly name: string
  readonly label: Content
  readonly hint?: Content
  readonly checked: boolean
  readonly disabled?: boolean
}

interface SelectField {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly options: readonly (readonly [value: string, label: string])[]
  readonly hint?: Content
  readonly id?: string
  readonly autocomplete?: string
  readonly disabled?: boolean
}

/** What is wrong with a field; `isFirst` is where the person goes on. */
interface Problem {
  readonly text: string
  readonly isFirst: boolean
}

/** One form of a page. When it was refused its fields hold what was typed, and say what is wrong. */
export interface PageForm {
  readonly action: string
  /** Everything before the fields: the token, what is hidden, and what is wrong with the whole. */
  readonly start: Html
  /** It was sent and not accepted: what is folded is open. */
  readonly isRefused: boolean
  text(field: TextField): Html
  check(field: CheckField): Html
  select(field: SelectField): Html
  /** What was typed into a field that the form draws itself. */
  typed(name: string): string | undefined
  /** Whether a box that the form draws itself is ticked. */
  isTicked(name: string, value: string, otherwise: boolean): boolean
}

/** `hidden` tells forms of one action apart: each remembers only what was sent with the same. */
export function formAt(viewer: Viewer, action: string, hidden: Readonly<Record<string, string>> = {}): PageForm {
  const { draft } = viewer
  const isOurs =
    draft?.action === action && Object.entries(hidden).every(([name, value]) => draft.values.get(name) === value)
  const typed = isOurs ? draft.values : undefined
  const problems: ReadonlyMap<string, string> = isOurs ? draft.problems : new Map()
  if (isOurs) draft.isShown = true
  const isAbove = (name: string): boolean => name === '' || Object.hasOwn(hidden, name)
  const [first] = [...problems.keys()].filter((name) => !isAbove(name))
  const problemOf = (name: string): Problem | undefined => {
    const text = problems.get(name)
    return text === undefined ? undefined : { text, isFirst: name === first }
  }
  const above = [...problems].filter(([name]) => isAbove(name)).map(([, text]) => text)
  return {
    action,
    isRefused: isOurs,
    start: html`${csrfField(viewer)}${Object.entries(hidden).map(
      ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
    )}${above.map((text) => html`<p class="notice bad" role="alert">${text}</p>`)}`,
    text(field) {
      const value = field.type === 'password' ? '' : (typed?.get(field.name) ?? field.value ?? '')
      return textField({ ...field, value }, problemOf(field.name))
    },
    check: (field) => checkbox({ ...field, checked: typed ? typed.has(field.name) : field.checked }),
    select: (field) => selectField({ ...field, value: typed?.get(field.name) ?? field.value }, problemOf(field.name)),
    typed: (name) => typed?.get(name) ?? undefined,
    isTicked: (name, value, otherwise) => typed?.getAll(name).includes(value) ?? otherwise,
  }
}

function textField(field: TextField, problem: Problem | undefined): Html {
  const id = field.id ?? field.name
  const attributes = [
    html` id="${id}" name="${field.name}"`,
    field.required && html` required`,
    field.autocomplete !== undefined && html` autocomplete="${field.autocomplete}"`,
    field.placeholder !== undefined && html` placeholder="${field.placeholder}"`,
    field.minlength !== undefined && html` minlength="${field.minlength}"`,
    field.maxlength !== undefined && html` maxlength="${field.maxlength}"`,
    field.pattern !== undefined && html` pattern="${field.pattern}"`,
    field.verbatim && html` autocapitalize="none" spellcheck="false"`,
    described(id, field.hint, problem, field.autofocus),
  ]
  const input =
    field.rows === undefined
      ? html`<input class="input" type="${field.type ?? 'text'}" value="${field.value ?? ''}"${attributes}>`
      : html`<textarea class="input" rows="${field.rows}"${attributes}>${leadingNewlineSafe(field.value ?? '')}</textarea>`
  return html`
    <div class="field">
      <label for="${id}">${field.label}</label>
      ${field.suffix === undefined ? input : html`<div class="address">${input}<span>${field.suffix}</span></div>`}
      ${notes(id, field.hint, problem)}
    </div>
  `
}

/** HTML swallows a newline right after `<textarea>`. */
function leadingNewlineSafe(text: string): string {
  return text.startsWith('\n') ? `\n${text}` : text
}

export function checkbox(field: CheckField): Html {
  return html`<label class="check">
    <input type="checkbox" name="${field.name}" value="on"${field.checked ? html` checked` : ''}${
      field.disabled ? html` disabled` : ''
    }>
    <span>${field.label}${field.hint !== undefined && html`<span class="hint">${field.hint}</span>`}</span>
  </label>`
}

function selectField(field: SelectField, problem: Problem | undefined): Html {
  const id = field.id ?? field.name
  const attributes = [
    html` id="${id}" name="${field.name}"`,
    field.autocomplete !== undefined && html` autocomplete="${field.autocomplete}"`,
    field.disabled && html` disabled`,
    described(id, field.hint, problem, false),
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
      ${notes(id, field.hint, problem)}
    </div>
  `
}

/** The error is read before the hint. */
function described(id: string, hint: Content, problem: Problem | undefined, autofocus: boolean | undefined): Content {
  const ids = [problem && `${id}-problem`, hint !== undefined && `${id}-hint`].filter((each) => each)
  return [
    problem && html` aria-invalid="true"`,
    ids.length > 0 && html` aria-describedby="${ids.join(' ')}"`,
    (problem?.isFirst ?? autofocus) && html` autofocus`,
  ]
}

function notes(id: string, hint: Content, problem: Problem | undefined): Content {
  return [
    problem && html`<span class="problem" id="${id}-problem" role="alert">${problem.text}</span>`,
    hint !== undefined && html`<span class="hint" id="${id}-hint">${hint}</span>`,
  ]
}
