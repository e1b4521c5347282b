/** What a page says after a form: a word in the address, so that it survives a redirect and needs no storage. */
import type { Request } from '../../../ground/http/route.ts'
import type { Flash } from './layout.ts'

const MESSAGES: ReadonlyMap<string, Flash> = new Map([
  [
    'welcome',
    {
      tone: 'good',
      text: 'Welcome. Open the link in the mail we just sent; then your drops are visible.',
      asksToVerify: true,
    },
  ],
  ['account-made', { tone: 'good', text: 'Welcome. Your account is ready.' }],
  ['claimed', { tone: 'good', text: 'Yours now. The address stays the same.' }],
  [
    'claimed-hidden',
    {
      tone: 'warn',
      text:
        'Yours now, at the same address. Until you open the link in the mail that we just sent, ' +
        'visitors see a notice there; a second later your pages are back.',
      asksToVerify: true,
    },
  ],
  ['mailed', { tone: 'good', text: 'The mail is on its way.' }],
  [
    'reset',
    {
      tone: 'good',
      text: 'Your password is changed. All sessions, API tokens and connected apps have ended: make new ones where you need them.',
    },
  ],
  [
    'password-all',
    { tone: 'good', text: 'Your password is changed. Other sessions, API tokens and connected apps have ended.' },
  ],
  ['password', { tone: 'good', text: 'Your password is changed. Other sessions have ended.' }],
  ['joined', { tone: 'good', text: 'You have joined the organisation.' }],
  ['saved', { tone: 'good', text: 'Saved. Visitors see it now.' }],
  ['passkey-added', { tone: 'good', text: 'The passkey is added. You can sign in with it from now on.' }],
  ['factor-off', { tone: 'good', text: 'The second factor is off. Signing in is enough.' }],
  ['factor-kept', { tone: 'good', text: 'Stopped. Everything that opens your account stays as it is.' }],
  ['workflow-trusted', { tone: 'good', text: 'Trusted. It can publish from its next run on.' }],
  ['workflow-removed', { tone: 'good', text: 'Removed. It cannot publish any more.' }],
  ['saved-general', { tone: 'good', text: 'Saved.' }],
  ['password-set', { tone: 'good', text: 'Saved. Visitors need the password from now on.' }],
  ['password-removed', { tone: 'good', text: 'Removed. Everyone with the address can see the drop now.' }],
  ['private', { tone: 'good', text: 'Private now: only people whom you name can see it.' }],
  ['public', { tone: 'good', text: 'Everyone with the address can see it now.' }],
  ['chosen', { tone: 'good', text: 'Saved. These stay live.' }],
  ['deleted', { tone: 'good', text: 'Deleted. The address says that it is gone.' }],
  ['published', { tone: 'good', text: 'Published.' }],
  ['preview-published', { tone: 'good', text: 'Published to its preview. The live version stays as it is.' }],
  ['preview-removed', { tone: 'good', text: 'The preview is removed.' }],
  ['sent', { tone: 'good', text: 'On its way. Reload to see what came of it.' }],
  ['added', { tone: 'good', text: 'Added.' }],
  ['checked', { tone: 'good', text: 'Checked. This is what we found.' }],
  ['removed', { tone: 'good', text: 'Removed.' }],
  ['revoked', { tone: 'good', text: 'Revoked. It does not work any more.' }],
  ['transferred', { tone: 'good', text: 'The organisation has a new owner. You are an admin of it.' }],
  ['invited', { tone: 'good', text: 'The invitation is on its way.' }],
  ['switched', { tone: 'good', text: 'You act for this organisation now.' }],
  ['reported', { tone: 'good', text: 'Thank you. We will look at it.' }],
  ['done', { tone: 'good', text: 'Done.' }],
])

/** The page at `path`, which may have a query of its own, with a word to say. */
export function saying(path: string, done: string): string {
  const [withoutHash, hash = ''] = splitAt(path, '#')
  const [bare, query = ''] = splitAt(withoutHash, '?')
  const kept = query.split('&').filter((part) => part !== '' && !part.startsWith('done='))
  return `${bare}?${[...kept, `done=${done}`].join('&')}${hash === '' ? '' : `#${hash}`}`
}

function splitAt(text: string, mark: string): [string, string?] {
  const at = text.indexOf(mark)
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

export function flashOf(request: Pick<Request, 'query'>): { flash?: Flash } {
  const flash = MESSAGES.get(request.query.get('done') ?? '')
  return flash === undefined ? {} : { flash }
}
