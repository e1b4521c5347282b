/**
 * A real browser for tests: Debian's chromium without a window, which takes two thirds of the processor time of the one with it;
 * driven by playwright-core, with a fresh profile each time.
 */
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { chromium, type Browser, type BrowserContextOptions } from 'playwright-core'

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  // No process that draws as a graphics card would: an eighth of the processor time.
  '--disable-software-rasterizer',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--lang=en-US',
]

/** Only what hangs meets it: Playwright's own half a minute is little where a machine stands still for a while. */
const PATIENCE_MS = 120_000

interface BrowserOptions {
  /** Where it looks for authorities that its user trusts. */
  readonly home?: string | undefined
  /** A name that leads to this machine, as its DNS would say. */
  readonly localHost?: string | undefined
}

/** One browser for all files of a test process, which outlives the module; each file has its own contexts. */
const kept = globalThis as { dropwayTestBrowser?: Promise<Browser> }

export async function launchBrowser({ home, localHost }: BrowserOptions = {}): Promise<Browser> {
  if (home !== undefined || localHost !== undefined) {
    const own = await launch({ home, localHost })
    return patient(own, () => own.close())
  }
  kept.dropwayTestBrowser ??= launch({})
  return lent(await kept.dropwayTestBrowser)
}

function launch({ home, localHost }: BrowserOptions): Promise<Browser> {
  const env = { ...process.env, ...(home === undefined ? {} : { HOME: home }) }
  const rules = localHost === undefined ? [] : [`--host-resolver-rules=MAP ${localHost} 127.0.0.1`]
  return chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: [...ARGS, ...rules], env })
}

/** The same browser for one file: `close()` closes what that file opened. */
function lent(browser: Browser): Browser {
  const opened = new Set<Opened>()
  return patient(
    browser,
    () => Promise.all([...opened].map((one) => one.close())),
    (one) => opened.add(one),
  )
}

interface Opened {
  close(): Promise<void>
  setDefaultTimeout(timeoutMs: number): void
}

/** What is opened in it has the patience that tests have; `onOpen` hears of it. */
function patient(
  browser: Browser,
  close: () => Promise<unknown>,
  onOpen: (one: Opened) => unknown = () => {},
): Browser {
  const opening = async <One extends Opened>(pending: Promise<One>): Promise<One> => {
    const one = await pending
    one.setDefaultTimeout(PATIENCE_MS)
    onOpen(one)
    return one
  }
  return new Proxy(browser, {
    get(target, name) {
      if (name === 'newContext') return (options?: BrowserContextOptions) => opening(target.newContext(options))
      if (name === 'newPage') return (options?: BrowserContextOptions) => opening(target.newPage(options))
      if (name === 'close') return close
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** Imports an authority as a person would: browsers with this home trust it from then on. */
export async function trustAuthority(home: string, pemFile: string): Promise<void> {
  const folder = path.join(home, '.pki', 'nssdb')
  await mkdir(folder, { recursive: true })
  const certutil = (...args: string[]) => promisify(execFile)('certutil', ['-d', `sql:${folder}`, ...args])
  await certutil('-N', '--empty-password')
  await certutil('-A', '-n', 'dropway', '-t', 'C,,', '-i', pemFile)
}
