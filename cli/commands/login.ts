import { ApiFailure, toFailure } from '../service/api-failure.ts'
import { openBrowser } from '../terminal/browser.ts'
import type { Command, Context } from '../terminal/command.ts'
import type { Credentials } from '../service/sign-in/credentials.ts'
import { notSignedIn } from '../terminal/failure.ts'
import { openLoopback } from '../service/sign-in/loopback.ts'
import type { ServerMetadata } from '../service/sign-in/oauth.ts'
import { parseAddress, rememberService } from '../service/settings.ts'
import { plain } from '../terminal/terminal.ts'

/** A sign-in that takes longer was given up. */
const LOGIN_TIMEOUT_MS = 10 * 60_000

export const login: Command = {
  kind: 'service',
  name: 'login',
  summary: 'Sign in once; names the service that all commands use',
  usage: 'login [address] [--device]',
  options: {
    device: { type: 'boolean', help: 'Show a short code to enter in a browser anywhere' },
    'no-browser': { type: 'boolean', help: 'The same as --device' },
  },
  details: [
    'The address, such as https://dropway.example, is needed the first time and remembered.',
    'On a machine without a browser (a server, a container, over SSH) it shows a short code by itself.',
    'In CI set DROPWAY_URL, and DROPWAY_TOKEN to an API token from the dashboard, instead.',
  ],
  maxPositionals: 1,
  addressFrom: ({ positionals: [address] }) =>
    address === undefined ? undefined : parseAddress(address, 'The address'),
  async run(context, args) {
    const { settings, terminal, url } = context
    const signedIn = await signIn(context, args.flag('device') || args.flag('no-browser'))
    rememberService(settings.configDir, url, settings.caFileFor(url))
    const email = await emailOf(context, signedIn)
    terminal.note(`From now on commands talk to ${url}; DROPWAY_URL names another service.`)
    if (settings.token !== undefined) terminal.note('DROPWAY_TOKEN is set and wins over this sign-in.')
    terminal.print(`Signed in as ${email}.`)
    terminal.data({ signed_in: true, email, url })
  },
}

/** Signs in with a browser on this machine, or with a code where there is none or one is wanted; stores the tokens. */
export async function signIn(context: Context, wantsCode: boolean): Promise<Credentials> {
  const { oauth, credentials, settings, url } = context
  const metadata = await oauth.discover()
  const here = wantsCode || !settings.hasBrowser ? undefined : await signInHere(context, metadata)
  const signedIn = here ?? (await signInAnywhere(context, metadata))
  await credentials.write(url, signedIn)
  return signedIn
}

/** The address that this sign-in belongs to, whatever DROPWAY_TOKEN says. */
async function emailOf({ http, url }: Context, { access_token }: Credentials): Promise<string> {
  const reply = await http.send(`${url}/api/v1/me`, {
    method: 'GET',
    headers: { accept: 'application/json', authorization: `Bearer ${access_token}` },
  })
  const text = await reply.text()
  if (reply.status !== 200) throw toFailure(reply.status, text)
  return plain((JSON.parse(text) as { user: { email: string } }).user.email)
}

/** The client that signed in before, unless the service has forgotten it. */
async function knownClient({ credentials, url }: Context): Promise<string | undefined> {
  return (await credentials.read(url))?.client_id
}

/** Signs in with a browser on this machine; undefined when none can be opened. */
async function signInHere(context: Context, metadata: ServerMetadata): Promise<Credentials | undefined> {
  const { oauth, settings, terminal } = context
  const loopback = await openLoopback()
  try {
    const known = await knownClient(context)
    let attempt = known === undefined ? undefined : oauth.begin(metadata, known, loopback.port)
    if (attempt === undefined || !(await oauth.isAcceptable(attempt)))
      attempt = oauth.begin(metadata, await oauth.register(metadata), loopback.port)
    if (!(await openBrowser(attempt.url, settings.browser))) return undefined
    // The address goes to stderr even with --json: a person may have to open it.
    terminal.stderr.write(`Your browser shows the sign-in. If it does not, open this address:\n\n${attempt.url}\n\n`)
    return await oauth.complete(metadata, attempt, await inTime(loopback.answer))
  } finally {
    loopback.close()
  }
}

async function inTime<Value>(answer: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(notSignedIn('No one signed in within ten minutes. Run "dropway login" again.')),
      LOGIN_TIMEOUT_MS,
    )
  })
  try {
    return await Promise.race([answer, tooLate])
  } finally {
    clearTimeout(timer)
  }
}

/** Signs in with a short code that is entered in a browser anywhere (RFC 8628). */
async function signInAnywhere(context: Context, metadata: ServerMetadata): Promise<Credentials> {
  const { oauth, terminal } = context
  const known = await knownClient(context)
  let clientId = known ?? (await oauth.register(metadata))
  const device = await oauth.beginDevice(metadata, clientId).catch(async (error: unknown) => {
    if (known === undefined || !(error instanceof ApiFailure) || error.status !== 401) throw error
    clientId = await oauth.register(metadata)
    return oauth.beginDevice(metadata, clientId)
  })
  // The code goes to stderr even with --json: a person has to act on it.
  terminal.stderr.write(
    `Open this address in a browser, on any device:\n\n  ${device.verification_uri}\n\nand enter the code:\n\n  ${device.user_code}\n\nWaiting …\n`,
  )
  return oauth.completeDevice(metadata, clientId, device)
}
