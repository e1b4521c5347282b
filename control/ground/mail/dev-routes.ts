/**
 * `/dev/mail`: the mails of a local run, readable in the browser. The mails hold links that open accounts, so it is
 * there only while BASE_URL is a loopback name and no mail server is set, and answers only a browser on this machine
 * that asks for that very name: not what came through a relay, not a stranger's name that points here.
 */
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { errors } from '../../../shared/contracts/errors.ts'
import { parseAuthority } from '../../../shared/http/hosts.ts'
import { isLoopback } from '../../../shared/http/ip.ts'
import { html, type Content } from '../../../shared/pages/html.ts'
import type { Look } from '../../../shared/pages/look.ts'
import { createStandalonePages } from '../../../shared/pages/shell.ts'
import { html as htmlReply } from '../http/reply.ts'
import type { Reply, Request, Route } from '../http/route.ts'
import { RELAYED_HEADER } from '../../../shared/http/relayed.ts'
import { readMessage, type ReadMessage } from './eml.ts'

const MAX_LISTED = 200
const MAIL_ID = /^mail_[0-9a-z]+$/

interface DevMailOptions {
  readonly folder: string
  readonly serviceHost: string
  readonly look?: Look
}

export function devMailRoutes({ folder, serviceHost, look }: DevMailOptions): Route[] {
  const standalone = createStandalonePages(look)
  const page = (heading: string, lead: Content, body: Content): Reply => {
    const rendered = standalone({ title: heading, heading, lead, body, home: '/' })
    return { status: 200, headers: rendered.headers, body: rendered.body }
  }

  const routes: Route[] = [
    {
      method: 'GET',
      path: '/dev/mail',
      async handle() {
        const mails = await listMails(folder)
        const items = mails.map(
          ({ id, message }) =>
            html`<li><a href="/dev/mail/${id}">${message.subject}</a><br><small>${message.to} · ${message.date}</small></li>`,
        )
        return page(
          'Mail',
          'What this machine would have sent, newest first.',
          items.length > 0 ? html`<ul>${items}</ul>` : html`<p>Nothing yet.</p>`,
        )
      },
    },
    {
      method: 'GET',
      path: '/dev/mail/:id',
      async handle(request) {
        const id = mailId(request.params['id'])
        const message = await readMail(folder, id)
        return page(
          message.subject,
          html`To ${message.to} · ${message.date}`,
          html`<p><a href="/dev/mail/${id}/html">Show the HTML part</a> · <a href="/dev/mail">All mails</a></p><pre>${linkified(message.text)}</pre>`,
        )
      },
    },
    {
      method: 'GET',
      path: '/dev/mail/:id/html',
      async handle(request) {
        const message = await readMail(folder, mailId(request.params['id']))
        // The mail's own document: inline styles, links, and nothing that runs or loads.
        return htmlReply(200, message.html, {
          'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
          'referrer-policy': 'no-referrer',
        })
      },
    },
  ]
  return routes.map((route) => ({ ...route, handle: (request) => route.handle(requireLocal(request, serviceHost)) }))
}

/** What proxies add to the requests that they pass on; our own edge replaces X-Forwarded-For by the one it saw. */
const RELAY_HEADERS = ['forwarded', 'via', 'x-real-ip', RELAYED_HEADER]

function requireLocal(request: Request, serviceHost: string): Request {
  const isRelayed =
    RELAY_HEADERS.some((name) => request.header(name) !== undefined) ||
    request.header('x-forwarded-for')?.includes(',') === true
  if (isRelayed || !isLoopback(request.ip) || hostOf(request) !== serviceHost) throw errors.notFound('address')
  return request
}

/** Where BASE_URL is an address, Host is too. */
function hostOf(request: Request): string | undefined {
  const authority = request.header('host')
  return parseAuthority(authority) ?? authority?.replace(/:\d+$/, '')
}

function mailId(id: string | undefined): string {
  if (id === undefined || !MAIL_ID.test(id)) throw errors.notFound('mail')
  return id
}

async function readMail(folder: string, id: string): Promise<ReadMessage> {
  try {
    return readMessage(await readFile(path.join(folder, `${id}.eml`), 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw errors.notFound('mail')
    throw error
  }
}

/** Ids begin with their time, so the names sort by age. */
async function listMails(folder: string): Promise<{ id: string; message: ReadMessage }[]> {
  const names = await readdir(folder).catch(() => [])
  const ids = names.filter((name) => name.endsWith('.eml')).map((name) => name.slice(0, -'.eml'.length))
  const newest = ids
    .filter((id) => MAIL_ID.test(id))
    .toSorted()
    .toReversed()
    .slice(0, MAX_LISTED)
  return Promise.all(newest.map(async (id) => ({ id, message: await readMail(folder, id) })))
}

/** A link in the text part can be followed. */
function linkified(text: string): Content {
  return text
    .split(/(https?:\/\/[^\s)]+)/)
    .map((piece, index) => (index % 2 === 1 ? html`<a href="${piece}">${piece}</a>` : piece))
}
