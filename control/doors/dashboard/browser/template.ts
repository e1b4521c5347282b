/** Live preview while a template's form is filled in. */
import { enablePreview } from './modules/preview.ts'

const form = document.querySelector<HTMLFormElement>('form[data-template]')
if (form) enablePreview(form, form)
