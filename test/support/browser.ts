/** A real browser for tests: Debian's chromium, driven by playwright-core, with a fresh profile each time. */
import { chromium, type Browser } from 'playwright-core'

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** `home` is where it looks for authorities that its user trusts. */
export async function launchBrowser({ home }: { home?: string } = {}): Promise<Browser> {
  const env = { ...process.env, ...(home === undefined ? {} : { HOME: home }) }
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: ARGS, env })
}
