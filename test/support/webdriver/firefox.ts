/** Debian's Firefox without a window, told what to do over Marionette: messages are `<bytes>:<JSON>` on a socket. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { RefusedByBrowser, untilThere, type Command, type Driver, type DriverOptions } from './driver.ts'

/** Everything but this machine is behind a proxy that is not there: a browser of a test calls no one else. */
const PREFERENCES = {
  'marionette.port': 0,
  'network.proxy.type': 1,
  'network.proxy.http': '127.0.0.1',
  'network.proxy.http_port': 9,
  'network.proxy.ssl': '127.0.0.1',
  'network.proxy.ssl_port': 9,
  'app.normandy.enabled': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'media.gmp-manager.updateEnabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'browser.safebrowsing.update.enabled': false,
}

const NO_COOKIES = 2

/** Said by the browser's own console, which knows what pages did and what their policies refused. */
const ERRORS_OF_PAGES = `return Services.console.getMessageArray()
  .filter((message) => message instanceof Ci.nsIScriptError && /^https:/.test(message.sourceName || 'https:'))
  .filter((message) => /^CSP/.test(message.category) || (message.category === 'content javascript' && !(message.flags & 1)))
  .filter((message) => !/^Content-Security-Policy: Ignoring .x-frame-options/.test(message.errorMessage))
  .map((message) => message.errorMessage + ' at ' + message.sourceName + ':' + message.lineNumber)`

/** What the panel around pages is given: the window of a Firefox is never narrower than 450 pixels. */
const SET_WIDTH = `const { style } = gBrowser.selectedBrowser
  style.minWidth = style.maxWidth = arguments[0] + 'px'`

type Marionette = (name: string, parameters?: Readonly<Record<string, unknown>>) => Promise<unknown>

export async function startFirefox({ width, cookies, javaScript }: DriverOptions): Promise<Driver> {
  const profile = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-firefox-'))
  const preferences = {
    ...PREFERENCES,
    'javascript.enabled': javaScript,
    ...(cookies ? {} : { 'network.cookie.cookieBehavior': NO_COOKIES }),
  }
  const lines = Object.entries(preferences).map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`)
  await writeFile(path.join(profile, 'user.js'), lines.join(''))
  const args = ['--headless', '--no-remote', '--profile', profile, '--marionette', '--remote-allow-system-access']
  const browser = spawn('/usr/bin/firefox-esr', args, { env: { ...process.env, HOME: profile }, stdio: 'ignore' })
  const ended = once(browser, 'exit')
  // The file may be there before its text is.
  const port = await untilThere(
    'Firefox',
    async () => Number(await readFile(path.join(profile, 'MarionetteActivePort'), 'utf8')) || undefined,
  )
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const call = speakMarionette(socket)
  await call('WebDriver:NewSession', { acceptInsecureCerts: true, unhandledPromptBehavior: 'accept' })

  async function inBrowser(script: string, ...args: readonly unknown[]): Promise<unknown> {
    await call('Marionette:SetContext', { value: 'chrome' })
    try {
      return await call('WebDriver:ExecuteScript', { script, args, sandbox: 'system' })
    } finally {
      await call('Marionette:SetContext', { value: 'content' })
    }
  }
  await call('WebDriver:SetWindowRect', { width: Math.max(width, 500), height: 900 })
  await inBrowser(SET_WIDTH, width)

  return {
    command: (command, parameters = {}) => call(`WebDriver:${command}`, translated(command, parameters)),
    problems: async () => (await inBrowser(ERRORS_OF_PAGES)) as string[],
    async close() {
      socket.destroy()
      browser.kill('SIGKILL')
      await ended
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** Marionette names a frame's element otherwise, and a cookie as one thing. */
function translated(
  command: Command,
  parameters: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  if (command !== 'SwitchToFrame' || parameters['id'] === null) return parameters
  return { element: Object.values(parameters['id'] as Readonly<Record<string, string>>)[0] }
}

function speakMarionette(socket: net.Socket): Marionette {
  const waiting = new Map<number, (error: { message: string } | null, value?: unknown) => void>()
  let received = Buffer.alloc(0)
  let last = 0
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    for (;;) {
      const colon = received.indexOf(':')
      const end = colon + 1 + Number(received.subarray(0, Math.max(colon, 0)).toString())
      if (colon === -1 || received.length < end) return
      const message = JSON.parse(received.subarray(colon + 1, end).toString())
      received = received.subarray(end)
      // The first message introduces the browser and is not an answer.
      if (Array.isArray(message)) waiting.get(message[1])?.(message[2], message[3])
    }
  })
  socket.on('close', () => {
    for (const answer of waiting.values()) answer({ message: 'Firefox ended' })
  })
  return (name, parameters = {}) => {
    const id = ++last
    const text = JSON.stringify([0, id, name, parameters])
    socket.write(`${Buffer.byteLength(text)}:${text}`)
    return new Promise((resolve, reject) => {
      waiting.set(id, (error, value) => {
        waiting.delete(id)
        if (error !== null) reject(new RefusedByBrowser(`${name}: ${error.message}`))
        else resolve(isWrapped(value) ? value.value : value)
      })
    })
  }
}

function isWrapped(value: unknown): value is { readonly value: unknown } {
  return typeof value === 'object' && value !== null && Object.keys(value).join() === 'value'
}
