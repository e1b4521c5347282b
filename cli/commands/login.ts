import { openBrowser } from '../browser.ts'
import type { Command, Context } from '../command.ts'
import { notSignedIn } from '../failure.ts'
import { openLoopback, type Loopback } from '../loopback.ts'
import type { Attempt } from '../oauth.ts'

/** A sign-in that takes longer was given up. */
const LOGIN_TIMEOUT_MS = 10 * 60_000

export const login: Command = {
  name: 'login',
  summary: 'Sign in with the browser, once',
  usage: 'login [--no-browser]',
  options: { 'no-browser': { type: 'boolean', help: 'Only print the address to open' } },
  details: ['In CI set DROPWAY_TOKEN to an API token from the dashboard instead.'],
  maxPositionals: 0,
  async run(context, args) {
    const { oauth, credentials, settings, terminal, api } = context
    const metadata = await oauth.discover()
    const clientId = (await credentials.read(settings.url))?.client_id ?? (await oauth.register(metadata))
    const loopback = await openLoopback()
    try {
      const attempt = oauth.begin(metadata, clientId, loopback.port)
      await showAddress(context, attempt, args.flag('no-browser'))
      const answer = await firstAnswer(context, loopback)
      await credentials.write(settings.url, await oauth.complete(metadata, attempt, answer))
    } finally {
      loopback.close()
    }
    const { user } = await api.call<{ user: { email: string } }>('GET', '/me')
    terminal.print(`Signed in as ${user.email}.`)
    terminal.data({ signed_in: true, email: user.email })
  },
}

async function showAddress({ terminal, settings }: Context, attempt: Attempt, printOnly: boolean): Promise<void> {
  const opened = !printOnly && (await openBrowser(attempt.url, settings.browser))
  // On stderr even with --json: somebody has to open it.
  terminal.stderr.write(
    `${opened ? 'Your browser shows the sign-in. If it does not, open this address:' : 'Open this address in a browser:'}\n\n${attempt.url}\n\n`,
  )
}

/** From the loopback redirect, or pasted by somebody whose browser runs on another machine. */
async function firstAnswer({ terminal }: Context, loopback: Loopback): Promise<URLSearchParams> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(notSignedIn('Nobody signed in within ten minutes. Run "dropway login" again.')),
      LOGIN_TIMEOUT_MS,
    )
  })
  const pasted = terminal
    .ask('Waiting for the browser. If it runs elsewhere, paste the address it ends at: ')
    .then((text) => {
      const query = text?.split('?', 2)[1]
      return query === undefined ? loopback.answer : new URLSearchParams(query)
    })
  // Closing the prompt after the browser answered rejects it; that is no failure.
  pasted.catch(() => {})
  try {
    return await Promise.race([loopback.answer, pasted, tooLate])
  } finally {
    clearTimeout(timer)
    terminal.stdin.destroy()
  }
}
