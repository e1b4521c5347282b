/**
 * `/dev/mail`: the mails of a local run, readable in the browser. Wired only while there is no mail server, and there
 * only for whoever sits at the machine: the mails hold links that open accounts.
 */
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { errors } from '../../shared/errors.ts'
import { isLoopback } from '../../shared/ip.ts'
import { html, type Content } from '../../shared/pages/html.ts'
import { createStandalonePages } from '../../shared/pages/shell.ts'
import { html as htmlReply } from '../http/reply.ts'
import type { Reply, Request, Route } from '../http/route.ts'
import { readMessage, type ReadMessage } from './eml.ts'

const MAX_LISTED = 200
const MAIL_ID = /^mail_[0-9a-z]+$/

export function devMailRoutes({ folder }: { folder: string }): Route[] {
  const standalone = createStandalonePages()
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
  return routes.map((route) => ({ ...route, handle: (request) => route.handle(requireLocal(request)) }))
}

function requireLocal(request: Request): Request {
  if (!isLoopback(request.ip)) throw errors.notFound('address')
  return request
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
