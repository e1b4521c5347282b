/** Opens an address in the user's browser; false when there is no way to. */
import { spawn } from 'node:child_process'

export function openBrowser(url: string, browser: string | undefined): Promise<boolean> {
  const [command, ...args] = openerFor(process.platform, browser)
  return new Promise((resolve) => {
    const child = spawn(command!, [...args, url], { stdio: 'ignore', detached: true })
    child.once('error', () => resolve(false))
    child.once('spawn', () => {
      child.unref()
      resolve(true)
    })
  })
}

function openerFor(platform: NodeJS.Platform, browser: string | undefined): string[] {
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
