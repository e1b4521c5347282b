/** `logout` and `whoami`. */
import type { Command } from '../command.ts'
import { plain, table } from '../terminal.ts'

export const logout: Command = {
  name: 'logout',
  summary: 'Revoke the stored sign-in and forget it',
  usage: 'logout',
  maxPositionals: 0,
  async run({ credentials, oauth, settings, terminal }) {
    const stored = await credentials.read(settings.url)
    if (stored === undefined) {
      terminal.print('Nobody was signed in.')
    } else {
      // Forgotten first: a service that cannot be reached must not keep the token on this machine.
      await credentials.remove(settings.url)
      await oauth.revoke(stored)
      terminal.print('Signed out.')
    }
    if (settings.token !== undefined) terminal.note('DROPWAY_TOKEN is still set; revoke it in the dashboard settings.')
    terminal.data({ signed_out: stored !== undefined })
  },
}

interface Account {
  readonly user: { readonly email: string; readonly email_verified: boolean }
  readonly organisation: { readonly name: string }
  readonly plan: string
  readonly role: string
}

export const whoami: Command = {
  name: 'whoami',
  summary: 'Show who is signed in',
  usage: 'whoami',
  maxPositionals: 0,
  async run({ api, settings, terminal }) {
    const account = await api.call<Account>('GET', '/me')
    terminal.data(account)
    const { user, organisation, plan, role } = account
    const rows = [
      ['E-mail', user.email_verified ? user.email : `${user.email} (not verified)`],
      ['Organisation', plain(organisation.name)],
      ['Plan', plan],
      ['Role', role],
      ['Service', settings.url],
    ]
    for (const line of table(rows)) terminal.print(line)
  },
}
