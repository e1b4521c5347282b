/** Uploads with progress and cancel: fetch cannot report how much has been sent, XMLHttpRequest can. */
export interface Sent {
  readonly status: number
  readonly text: string
}

export interface Sending {
  readonly done: Promise<Sent>
  cancel(): void
}

export class SendError extends Error {}

export function send(
  url: string,
  body: FormData,
  headers: Readonly<Record<string, string>>,
  onProgress: (sentBytes: number, allBytes: number) => void,
): Sending {
  const request = new XMLHttpRequest()
  const done = new Promise<Sent>((resolve, reject) => {
    request.open('POST', url)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.addEventListener('progress', (event) => {
      if (event.lengthComputable) onProgress(event.loaded, event.total)
    })
    request.addEventListener('load', () => resolve({ status: request.status, text: request.responseText }))
    request.addEventListener('error', () =>
      reject(new SendError('The connection broke. Nothing was published; try again.')),
    )
    request.addEventListener('abort', () => reject(new SendError('Cancelled. Nothing was published.')))
    request.send(body)
  })
  return { done, cancel: () => request.abort() }
}

/** What an API error says, or a sentence of our own when it says nothing. */
export function errorText(sent: Sent): string {
  const { detail } = bodyOf(sent)
  return typeof detail === 'string' ? detail : `The server answered ${sent.status}. Try again.`
}

/** The fields of a JSON answer; none when it is something else: a proxy's page, or nothing at all. */
export function bodyOf(sent: Sent): Readonly<Record<string, unknown>> {
  try {
    const body: unknown = JSON.parse(sent.text)
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
