/** Asks before something that others notice. A page of its own, so that it needs no script. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import type { PageForm } from './form-fields.ts'

export interface Question {
  readonly title: string
  /** What happens, and to whom. */
  readonly what: Content
  readonly button: string
  /** The way back, and what it is called. */
  readonly back: string
  readonly keep: string
}

export function confirmCard(form: PageForm, question: Question): Html {
  return html`
    <form class="card danger" method="post" action="${form.action}" aria-labelledby="question">
      <h2 id="question">${question.title}</h2>
      ${form.start}
      ${question.what}
      <div class="cluster">
        <button class="button danger">${question.button}</button>
        <a class="button" href="${question.back}">${question.keep}</a>
      </div>
    </form>
  `
}
