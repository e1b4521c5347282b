/** Opens an address in the user's browser; false when there is no way to. */
import { spawn } from 'node:child_process'

/** An opener that finds no browser says so at once; one that goes on for longer has found one. */
const GIVEN_UP_WITHIN_MS = 1500

export function openBrowser(url: string, browser: string | undefined): Promise<boolean> {
  const [command, ...args] = openerFor(process.platform, browser)
  return new Promise((resolve) => {
    const child = spawn(command, [...args, url], { stdio: 'ignore', detached: true })
    const timer = setTimeout(() => resolve(true), GIVEN_UP_WITHIN_MS)
    child.once('error', () => settle(false))
    child.once('exit', (code) => settle(code === 0))
    child.unref()
    function settle(opened: boolean): void {
      clearTimeout(timer)
      resolve(opened)
    }
  })
}

function openerFor(platform: NodeJS.Platform, browser: string | undefined): [command: string, ...args: string[]] {
  if (browser !== undefined) return [browser]
  switch (platform) {
    case 'darwin':
      return ['open']
    case 'win32':
      return ['rundll32', 'url.dll,FileProtocolHandler']
    default:
      return ['xdg-open']
  }
}
