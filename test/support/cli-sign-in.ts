/** Signing in the command-line client: the person's part, by plain requests. */
import { chmod, readFile, writeFile } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import type { Cli, CliResult, RunOptions } from './cli.ts'
import { formFields } from './form-browser.ts'
import type { Person } from './oauth-client.ts'

export type Run = (args: readonly string[], options?: RunOptions) => Promise<CliResult>

/** A program that the client opens as "the browser": it only notes the address in $OPENED. */
export async function makeOpener(cli: Cli): Promise<string> {
  const opener = path.join(cli.folder, 'opener')
  await writeFile(opener, `#!/bin/sh\nprintf %s "$1" > "$OPENED.part" && mv "$OPENED.part" "$OPENED"\n`)
  await chmod(opener, 0o755)
  return opener
}

export async function openedAddress(file: string): Promise<string> {
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text !== undefined) return text
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

let logins = 0

/** `dropway login` with a browser on the same machine. */
export async function loginByBrowser(
  cli: Cli,
  run: Run,
  person: Person,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<CliResult> {
  const opened = path.join(cli.folder, `opened-${++logins}`)
  const running = run(['login', ...args], { env: { ...env, BROWSER: await makeOpener(cli), OPENED: opened } })
  await approveLogin(person, opened)
  return running
}

/** The person's part once the client has opened "the browser": looks, and allows it. */
export async function approveLogin({ browser }: Person, opened: string): Promise<void> {
  const page = await browser.open(await openedAddress(opened))
  const form = new URLSearchParams({ ...formFields(page.text(), '/oauth/authorize'), decision: 'allow' })
  const answer = await browser.post('/oauth/authorize', form)
  await visitLoopback(answer.header('location')!)
}

/** `dropway login --device`: the code that it shows is typed in elsewhere. */
export function loginByCode(
  run: Run,
  person: Person,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = ['--device'],
): Promise<CliResult> {
  return run(['login', ...args], {
    env,
    respond(output) {
      const code = /^ {2}([A-Z]{4}-[A-Z]{4})\s*$/m.exec(output)?.[1]
      return code === undefined ? undefined : enterCode(person, code).then(() => '')
    },
  })
}

export async function enterCode({ browser }: Person, userCode: string, decision = 'allow'): Promise<void> {
  const page = await browser.send('/device', { user_code: userCode })
  const answer = await browser.post('/device', new URLSearchParams({ ...formFields(page.text(), '/device'), decision }))
  if (answer.status !== 200) throw new Error(`the code was not accepted: ${answer.status}`)
}

function visitLoopback(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    http.get(url, (reply) => reply.resume().once('end', resolve)).once('error', reject)
  })
}
