/** Debian's WebKit, which is the engine of Safari, on a screen that nobody sees, told what to do by WebKitWebDriver. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { freePorts } from '../stack.ts'
import { COMMANDS, RefusedByBrowser, untilThere, type Driver, type DriverOptions } from './driver.ts'

/** A driver that does not answer for so long hangs. */
const HUNG_MS = 120_000

/** The bar around pages, which would keep the window from being as narrow as a telephone. */
const NARROW_BAR = '* { min-width: 0; padding: 0; margin: 0; border-width: 0; font-size: 1px }'

export async function startWebKit({ width, cookies }: DriverOptions): Promise<Driver> {
  const home = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-webkit-'))
  const log = path.join(home, 'console')
  const binary = await layBrowser(home, log, cookies)
  const screen = spawn('Xvfb', ['-displayfd', '1', '-screen', '0', '1600x1000x24', '-nolisten', 'tcp'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [display] = (await once(screen.stdout, 'data')) as [Buffer]
  const [port] = await freePorts(1)
  const driver = spawn('WebKitWebDriver', [`--port=${port}`, '--host=127.0.0.1'], {
    env: {
      ...process.env,
      HOME: home,
      XDG_CONFIG_HOME: path.join(home, 'config'),
      XDG_RUNTIME_DIR: home,
      DISPLAY: `:${display.toString().trim()}`,
      GDK_BACKEND: 'x11',
      LIBGL_ALWAYS_SOFTWARE: '1',
      WEBKIT_DISABLE_COMPOSITING_MODE: '1',
    },
    stdio: 'ignore',
  })
  await untilThere('WebKitWebDriver', async () => (await fetch(`http://127.0.0.1:${port}/status`)).ok || undefined)
  const root = `http://127.0.0.1:${port}/session`
  const { sessionId } = (await ask('POST', root, {
    capabilities: {
      alwaysMatch: {
        acceptInsecureCerts: true,
        unhandledPromptBehavior: 'accept',
        'webkitgtk:browserOptions': { binary, args: ['--automation'] },
      },
    },
  })) as { sessionId: string }
  const session = `${root}/${sessionId}`
  await ask('POST', `${session}/window/rect`, { width, height: 900 })

  return {
    command(command, parameters = {}) {
      const [method, template] = COMMANDS[command]
      const rest = new Map(Object.entries(parameters))
      const address = template.replace(/\{(\w+)\}/g, (_, name: string) => {
        const value = String(rest.get(name))
        rest.delete(name)
        return value
      })
      return ask(method, session + address, method === 'POST' ? Object.fromEntries(rest) : undefined)
    },
    async problems() {
      const lines = (await readFile(log, 'utf8').catch(() => '')).split('\n')
      return lines.filter(
        (line) => /^CONSOLE (?:JS|SECURITY|NETWORK)? ?ERROR/.test(line) && !/status of 4\d\d/.test(line),
      )
    },
    async close() {
      await ask('DELETE', session).catch(() => {})
      for (const child of [driver, screen]) await end(child)
      await rm(home, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** The browser writes what its console says to a file: the driver would throw it away. */
async function layBrowser(home: string, log: string, cookies: boolean): Promise<string> {
  const [program] = globSync('/usr/lib/*/webkit2gtk-4.*/MiniBrowser')
  if (program === undefined) throw new Error('MiniBrowser is missing: install libwebkit2gtk-4.1-0')
  await mkdir(path.join(home, 'config', 'gtk-3.0'), { recursive: true })
  await writeFile(path.join(home, 'config', 'gtk-3.0', 'gtk.css'), NARROW_BAR)
  const options = ['--enable-write-console-messages-to-stdout=true', ...(cookies ? [] : ['--cookies-policy=never'])]
  const binary = path.join(home, 'browser')
  await writeFile(binary, `#!/bin/sh\nexec '${program}' ${options.join(' ')} "$@" >'${log}' 2>&1\n`)
  await chmod(binary, 0o755)
  return binary
}

async function ask(method: string, url: string, body?: unknown): Promise<unknown> {
  const answer = await fetch(url, {
    method,
    signal: AbortSignal.timeout(HUNG_MS),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const { value } = (await answer.json()) as { value: unknown }
  if (answer.ok) return value
  const { error, message } = value as { error: string; message: string }
  throw new RefusedByBrowser(`${new URL(url).pathname.split('/').slice(3).join('/')}: ${error}, ${message}`)
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}
