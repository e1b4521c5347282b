/** Passkeys: the browser asks the device, and our pages only carry the question and the answer. */

interface PasskeyClass {
  parseCreationOptionsFromJSON(options: unknown): PublicKeyCredentialCreationOptions
  parseRequestOptionsFromJSON(options: unknown): PublicKeyCredentialRequestOptions
}

/** Without it the buttons stay as they are in the page, out of use, and say why. */
const passkeyClass = (globalThis as { PublicKeyCredential?: Partial<PasskeyClass> }).PublicKeyCredential

async function post(path: string, body: unknown): Promise<unknown> {
  const reply = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify(body),
  })
  if (reply.status === 204) return undefined
  const answer = (await reply.json()) as { detail?: string; prove?: string }
  if (answer.prove !== undefined && reply.status === 403)
    location.assign(`${answer.prove}?next=${encodeURIComponent(location.pathname)}`)
  if (!reply.ok) throw new Error(answer.detail ?? 'That did not work. Try again.')
  return answer
}

async function add(api: PasskeyClass, form: HTMLFormElement): Promise<void> {
  const publicKey = api.parseCreationOptionsFromJSON(await post('/api/v1/passkeys/options', {}))
  const made = await navigator.credentials.create({ publicKey })
  const name = form.querySelector('input')?.value ?? ''
  await post('/api/v1/passkeys', { name, credential: made })
  location.assign('/account/ways-in?done=passkey-added')
}

async function signIn(api: PasskeyClass, form: HTMLFormElement): Promise<void> {
  const publicKey = api.parseRequestOptionsFromJSON(await post('/api/v1/signin/passkey/options', {}))
  const credential = await navigator.credentials.get({ publicKey })
  await post('/api/v1/signin/passkey', { credential })
  if (!sendBack()) location.assign(form.dataset['next'] ?? '/sites')
}

/**
 * What the person was about to send when their session ended goes back to where it was going; the page there shows it and
 * asks to look it over. True where there is such a thing.
 */
function sendBack(): boolean {
  const form = document.querySelector<HTMLFormElement>('form[data-left]') ?? carriedForm()
  if (form === undefined) return false
  form.submit()
  return true
}

/** What travels in two fields of the sign-in form, as the form that it came from. */
function carriedForm(): HTMLFormElement | undefined {
  const field = (name: string): string | undefined =>
    document.querySelector<HTMLInputElement>(`input[type=hidden][name="${name}"]`)?.value
  const action = field('draft_for')
  if (action === undefined) return undefined
  const form = document.createElement('form')
  const values = new URLSearchParams(field('draft'))
  Object.assign(form, { method: 'post', action, hidden: true })
  if (values.has('text')) form.enctype = 'multipart/form-data'
  for (const [name, value] of [['csrf', field('csrf') ?? ''], ...values] as const)
    form.append(Object.assign(document.createElement('textarea'), { name, value }))
  document.body.append(form)
  return form
}

/** Before what reaches far: the session stays, and has shown who holds it. */
async function prove(api: PasskeyClass, form: HTMLFormElement): Promise<void> {
  const publicKey = api.parseRequestOptionsFromJSON(await post('/api/v1/signin/passkey/options', {}))
  const credential = await navigator.credentials.get({ publicKey })
  await post('/api/v1/passkeys/proof', { credential })
  location.assign(form.dataset['next'] ?? '/account/ways-in')
}

const ACTS: Readonly<Record<string, typeof add>> = { add, prove, 'sign-in': signIn }

function enable(api: PasskeyClass, form: HTMLFormElement): void {
  const act = ACTS[form.dataset['passkey'] ?? ''] ?? signIn
  const said = form.querySelector('[role="status"]')
  for (const button of form.querySelectorAll('button')) button.disabled = false
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    act(api, form).catch((error: unknown) => {
      // The person closed the window, or has no passkey of ours.
      const isOwn = error instanceof DOMException
      if (said) said.textContent = isOwn ? 'Nothing was done.' : error instanceof Error ? error.message : ''
    })
  })
}

const { parseCreationOptionsFromJSON: creation, parseRequestOptionsFromJSON: request } = passkeyClass ?? {}
if (creation && request) {
  const api: PasskeyClass = {
    parseCreationOptionsFromJSON: (options) => creation.call(passkeyClass, options),
    parseRequestOptionsFromJSON: (options) => request.call(passkeyClass, options),
  }
  for (const form of document.querySelectorAll<HTMLFormElement>('form[data-passkey]')) enable(api, form)
} else {
  for (const said of document.querySelectorAll('form[data-passkey] [role="status"]'))
    said.textContent = 'This browser has no passkeys.'
}
