/** A browser without JavaScript: keeps cookies, reads a page's form and sends it. */
import type { Answer } from './client.ts'
import type { FetchOptions, Stack } from './stack.ts'

export class FormBrowser {
  readonly #stack: Stack
  readonly #from: string
  readonly cookies = new Map<string, string>()

  /** `from`: the address it comes from, so that tests do not share their limits. */
  constructor(stack: Stack, from: string) {
    this.#stack = stack
    this.#from = from
  }

  async open(pathOrUrl: string, options: FetchOptions = {}): Promise<Answer> {
    const cookie = [...this.cookies].map((pair) => pair.join('=')).join('; ')
    const headers = { ...(cookie === '' ? {} : { cookie }), ...options.headers }
    const answer = await this.#stack.fetch(pathOrUrl, { from: this.#from, ...options, headers })
    for (const set of answer.cookies) {
      const [name, value] = [set.slice(0, set.indexOf('=')), set.slice(set.indexOf('=') + 1)]
      if (value === '') this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return answer
  }

  /** Sends the form of `page` that posts to `action`, hidden fields included. */
  async send(page: string, fields: Record<string, string> = {}, action = page): Promise<Answer> {
    const body = new URLSearchParams({ ...formFields((await this.open(page)).text(), action), ...fields })
    return this.post(action, body)
  }

  /** Opens a link from a mail and presses the one button behind it, which posts to the page's own path. */
  confirm(link: string): Promise<Answer> {
    return this.send(link, {}, new URL(link, this.#stack.baseUrl).pathname)
  }

  post(action: string, body: URLSearchParams, headers: Record<string, string> = {}): Promise<Answer> {
    return this.open(action, {
      method: 'POST',
      body: body.toString(),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        origin: this.#stack.baseUrl,
        'sec-fetch-site': 'same-origin',
        ...headers,
      },
    })
  }

  /** The REST API as our own pages call it. */
  api(path: string, options: FetchOptions = {}): Promise<Answer> {
    return this.open(`/api/v1${path}`, { ...options, headers: { origin: this.#stack.baseUrl, ...options.headers } })
  }
}

/** Names and values that the form carries by itself. */
export function formFields(page: string, action: string): Record<string, string> {
  const form = page
    .split('<form')
    .find((part) => [`action="${action}"`, `action="${action}?`].some((start) => part.includes(start)))
  if (form === undefined) throw new Error(`the page has no form that posts to ${action}`)
  const inputs = form.split('</form>')[0]!.matchAll(/<input[^>]*type="hidden"[^>]*>/g)
  return Object.fromEntries([...inputs].map(([input]) => [attribute(input, 'name'), attribute(input, 'value')]))
}

function attribute(tag: string, name: string): string {
  const value = new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1] ?? ''
  return value.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&amp;', '&')
}
