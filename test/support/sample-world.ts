/** What the samples of the API reference speak of, really there: a site with versions, an organisation with people. */
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import yazl from 'yazl'
import { FormBrowser } from './form-browser.ts'
import { mailedLink } from './mailbox.ts'
import { connectWithToken } from './mcp-client.ts'
import type { Account, Stack } from './stack.ts'
import type { StripeStandIn } from './stripe-stand-in.ts'

const PASSWORD = 'correct horse battery staple'
/** The hash in the samples. */
const SAMPLE_SHA256 = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'

/** Variables of a sample's command, and what stands in it for an id that only an earlier answer knows. */
export interface Prepared {
  readonly variables: Readonly<Record<string, string>>
  readonly replaced: Readonly<Record<string, string>>
}

export interface SampleWorld {
  /** Makes what this operation needs, anew, so that no sample depends on another. */
  prepare(operationId: string): Promise<Prepared>
}

export async function createSampleWorld(stack: Stack, stripe: StripeStandIn, folder: string): Promise<SampleWorld> {
  await writeSampleFiles(folder)
  const owner = await stack.createAccount('business', { email: 'you@example.com', password: PASSWORD })
  const ada = await stack.createAccount('free', { email: 'ada@example.com', password: PASSWORD })
  const browser = new FormBrowser(stack, '198.51.100.10')
  await browser.send('/signin', { email: owner.email, password: PASSWORD })

  async function sessionOf(email: string): Promise<string> {
    const own = new FormBrowser(stack, '198.51.100.11')
    await own.send('/signin', { email, password: PASSWORD })
    return own.cookies.get('__Host-dropway_session') ?? ''
  }
  const ownerApi = apiOf(stack, owner)
  /** Names by id; no two are the same. */
  const organisations = new Map<string, string>()
  let domains = 0
  let contents = 0

  async function newSite(): Promise<{ SITE_ID: string; VERSION_ID: string }> {
    const site = await stack.publish(owner, '<title>One</title>first')
    await stack.publish(owner, '<title>Two</title>second', site)
    const versions = await ownerApi<{ version_id: string }[]>(`/sites/${site.id}/versions`)
    return { SITE_ID: site.id, VERSION_ID: versions.at(-1)!.version_id }
  }

  /** What the service has not seen yet: five bytes, as in the samples. */
  async function newContent(): Promise<{ text: string; sha256: string }> {
    const text = `h${String(++contents).padStart(4, '0')}`
    await writeFile(path.join(folder, 'index.html'), text)
    return { text, sha256: createHash('sha256').update(text).digest('hex') }
  }

  async function newUpload(siteId: string, sha256: string): Promise<string> {
    const files = [{ path: 'index.html', sha256, size: 5 }]
    return (await ownerApi<{ upload_id: string }>(`/sites/${siteId}/uploads`, { files })).upload_id
  }

  async function invite(organisationId: string): Promise<{ id: string; token: string }> {
    const { id } = await ownerApi<{ id: string }>(`/organisations/${organisationId}/invitations`, { email: ada.email })
    // Mails of calls that were shown before may come later.
    const link = await mailedLink(stack, ada.email, '/invitation', organisations.get(organisationId))
    return { id, token: new URL(link).searchParams.get('token')! }
  }

  /** In place of those before: a free plan has three. */
  async function newOrganisation(): Promise<string> {
    const all = await ownerApi<{ id: string; role: string; personal: boolean }[]>('/organisations')
    for (const { id } of all.filter(({ role, personal }) => role === 'owner' && !personal))
      await stack.fetch(`/api/v1/organisations/${id}`, { token: owner.token, method: 'DELETE' })
    const name = `Example ${organisations.size + 1} Ltd`
    const { id } = await ownerApi<{ id: string }>('/organisations', { name })
    organisations.set(id, name)
    return id
  }

  async function withMember(): Promise<string> {
    const organisation = await newOrganisation()
    await apiOf(stack, ada)('/invitations/accept', { token: (await invite(organisation)).token })
    return organisation
  }

  async function newDomain(siteId: string): Promise<string> {
    const name = `www.sample-${++domains}.example.org`
    await ownerApi(`/sites/${siteId}/domains`, { domain: name })
    return name
  }

  async function newViewer(siteId: string): Promise<string> {
    const list = { viewers: [{ email: 'grace@example.com' }], invite: false }
    const { viewers } = await ownerApi<{ viewers: [{ id: string }] }>(`/sites/${siteId}/viewers`, list)
    return viewers[0].id
  }

  async function newGuestLink(siteId: string): Promise<string> {
    return (await ownerApi<{ id: string }>(`/sites/${siteId}/guest-links`, {})).id
  }

  async function newThread(siteId: string): Promise<{ THREAD_ID: string; MESSAGE_ID: string }> {
    const said = { page: '/', body: 'The price is from last year.' }
    const thread = await ownerApi<{ id: string; messages: [{ id: string }] }>(`/sites/${siteId}/threads`, said)
    return { THREAD_ID: thread.id, MESSAGE_ID: thread.messages[0].id }
  }

  async function newPublisher(siteId: string): Promise<string> {
    const workflow = { provider: 'github', repository: 'octo/site' }
    return (await ownerApi<{ id: string }>(`/sites/${siteId}/publishers`, workflow)).id
  }

  async function contentToken(): Promise<string> {
    const client = await connectWithToken(stack, owner.token, 'modern')
    const result = await client.callTool({ name: 'service_upload', arguments: { name: 'index.html' } })
    await client.close()
    return /\/api\/v1\/content\/([\w.-]+)/.exec(JSON.stringify(result))![1]!
  }

  /** Someone who pays already. */
  async function customer(): Promise<Account> {
    const account = await stack.createAccount()
    const { url } = await apiOf(stack, account)<{ url: string }>('/billing/checkout', { plan: 'plus' })
    await stripe.pay(url)
    for (const event of stripe.undelivered) {
      const { body, signature } = stripe.sign(event)
      const headers = { 'content-type': 'application/json', 'stripe-signature': signature }
      await stack.fetch('/stripe/webhook', { body, headers })
    }
    return account
  }

  async function newPreview(siteId: string): Promise<string> {
    const body = new FormData()
    body.append('preview', 'pr-12')
    body.append('file', new File(['<title>Three</title>third'], 'index.html'))
    await stack.fetch(`/api/v1/sites/${siteId}/upload`, { token: owner.token, body })
    return 'pr-12'
  }

  /** In place of those before: an organisation has ten. */
  async function newWebhook(): Promise<{ WEBHOOK_ID: string; DELIVERY_ID: string }> {
    for (const { id } of await ownerApi<{ id: string }[]>('/webhooks'))
      await stack.fetch(`/api/v1/webhooks/${id}`, { token: owner.token, method: 'DELETE' })
    const wanted = { url: 'https://hooks.example.com/dropway', events: ['drop.published'] }
    const { id } = await ownerApi<{ id: string }>('/webhooks', wanted)
    const { id: DELIVERY_ID } = await ownerApi<{ id: string }>(`/webhooks/${id}/test`, {})
    return { WEBHOOK_ID: id, DELIVERY_ID }
  }

  /** What only some operations need. */
  const special: Readonly<
    Record<string, (site: string, content: { text: string; sha256: string }) => Promise<Partial<Prepared>>>
  > = {
    post_sites_id_uploads_upload_id_finish: async (site, { text, sha256 }) => {
      const UPLOAD_ID = await newUpload(site, sha256)
      await stack.fetch(`/api/v1/sites/${site}/uploads/${UPLOAD_ID}/blobs/${sha256}`, {
        token: owner.token,
        method: 'PUT',
        body: text,
      })
      return { variables: { UPLOAD_ID } }
    },
    put_content_token: async () => ({ variables: { TOKEN: await contentToken() } }),
    post_invitations_accept: async () => ({
      variables: { DROPWAY_SESSION: await sessionOf(ada.email) },
      replaced: { k3s9d0f2: (await invite(await newOrganisation())).token },
    }),
    delete_tokens_id: async () => {
      const { id } = (await browser.api('/tokens', { json: { name: 'Old' } })).json<{ id: string }>()
      return { variables: { TOKEN_ID: id } }
    },
    delete_organisations_id_invitations_invitation_id: async () => {
      const ORGANISATION_ID = await newOrganisation()
      return { variables: { ORGANISATION_ID, INVITATION_ID: (await invite(ORGANISATION_ID)).id } }
    },
    post_organisations_id_invitations: async () => ({
      variables: { ORGANISATION_ID: await newOrganisation() },
      replaced: { 'ada@example.com': 'grace@example.com' },
    }),
    get_organisations_id_invitations: async () => {
      const ORGANISATION_ID = await newOrganisation()
      await invite(ORGANISATION_ID)
      return { variables: { ORGANISATION_ID } }
    },
    delete_drops: async () => {
      const drop = (await stack.fetch('/api/v1/drops-md', { json: { markdown: '# Hello' } })).json<{
        claim_url: string
      }>()
      return { replaced: { '9d2c4b7e': new URL(drop.claim_url).searchParams.get('token')! } }
    },
    post_billing_checkout: async () => ({ variables: { DROPWAY_TOKEN: (await stack.createAccount()).token } }),
    post_billing_portal: async () => ({ variables: { DROPWAY_TOKEN: (await customer()).token } }),
  }

  return {
    async prepare(operationId) {
      const { SITE_ID, VERSION_ID } = await newSite()
      const needs = (part: string): boolean => operationId.includes(part)
      const content = await newContent()
      const extra = await special[operationId]?.(SITE_ID, content)
      const ORGANISATION_ID =
        needs('organisations_id') && extra?.variables?.['ORGANISATION_ID'] === undefined ? await withMember() : ''
      return {
        variables: {
          DROPWAY_TOKEN: owner.token,
          DROPWAY_SESSION: browser.cookies.get('__Host-dropway_session') ?? '',
          SITE_ID,
          VERSION_ID,
          UPLOAD_ID: needs('uploads_upload_id') ? await newUpload(SITE_ID, content.sha256) : '',
          SHA256: content.sha256,
          DOMAIN: needs('domains_domain') ? await newDomain(SITE_ID) : '',
          VIEWER_ID: needs('viewers_viewer_id') ? await newViewer(SITE_ID) : '',
          PUBLISHER_ID: needs('publishers_publisher_id') ? await newPublisher(SITE_ID) : '',
          LINK_ID: needs('guest_links_link_id') ? await newGuestLink(SITE_ID) : '',
          ORGANISATION_ID,
          USER_ID: ada.user_id,
          NAME: needs('previews_name') ? await newPreview(SITE_ID) : '',
          ...(needs('webhooks') ? await newWebhook() : {}),
          ...(needs('thread_id') || needs('message_id') ? await newThread(SITE_ID) : {}),
          ...extra?.variables,
        },
        replaced: {
          st_4f9kq2m7x1: SITE_ID,
          usr_2b8q6v3n1s: ada.user_id,
          [SAMPLE_SHA256]: content.sha256,
          ...extra?.replaced,
        },
      }
    },
  }
}

/** Calls as this account; a body makes it a POST. Throws what was refused. */
function apiOf(stack: Stack, { token }: Pick<Account, 'token'>) {
  return async <Value>(target: string, json?: unknown): Promise<Value> => {
    const answer = await stack.fetch(`/api/v1${target}`, { token, ...(json === undefined ? {} : { json }) })
    if (answer.status >= 300) throw new Error(`${target} answered ${answer.status}: ${answer.text()}`)
    return (answer.status === 204 ? undefined : answer.json()) as Value
  }
}

async function writeSampleFiles(folder: string): Promise<void> {
  await mkdir(path.join(folder, 'css'), { recursive: true })
  await writeFile(path.join(folder, 'page.html'), '<title>Hello</title><h1>Hello</h1>')
  await writeFile(path.join(folder, 'menu.pdf'), '%PDF-1.4\n%%EOF\n')
  await writeFile(path.join(folder, 'css', 'site.css'), 'h1 { color: teal }')
  const archive = new yazl.ZipFile()
  archive.addBuffer(Buffer.from('<h1>Zipped</h1>'), 'index.html')
  archive.end()
  await writeFile(path.join(folder, 'site.zip'), archive.outputStream)
}
