/**
 * The doctor of domains: people come with zones of all kinds, read what API, client and dashboard tell them, paste
 * exactly those lines at their DNS provider and nothing else, and the domain becomes active. A real CA, real DNS answers.
 */
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PASSWORD } from '../support/accounts.ts'
import { openCli, type Cli } from '../support/cli.ts'
import { IS_DEEP } from '../support/depth.ts'
import { situations, type Situation } from '../support/dns-situations.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'
import { freePorts, startStack, type Account, type OwnStack, type Published } from '../support/stack.ts'
import { openZone, type Zone, type ZoneType } from '../support/zone.ts'

interface Line {
  action: 'add' | 'replace' | 'remove'
  host: string
  zone: string
  name: string
  type: string
  value: string
  found: string[]
}

interface View {
  domain: string
  unicode: string | null
  state: string
  reason: string | null
  detail: string
  records: Line[]
  alternative: Line | null
  warnings: string[]
}

interface Person {
  readonly account: Account
  readonly site: Published
  readonly browser: FormBrowser
}

/** A situation as it was lived through. */
interface Told {
  readonly typed: string
  readonly zone: Zone
  readonly person: Person
  view: View
  after?: View
}

/** Every third of them; `npm run test:deep -- operations` lives through all. */
const lived = situations.filter((_, index) => IS_DEEP || index % 3 === 0)

/** As many domains as a plan has. */
const DOMAINS_PER_PERSON = 10
/** Far more than any of them takes. */
const MOST_CHECKS = 200
/** As many people at the same time. */
const AT_ONCE = 6

let pebble: Pebble
let stack: OwnStack
let cli: Cli
let stranger: http.Server
let rivals: Person[]
const told = new Map<string, Told>()
/** Targets that have got their address, or are about to. */
const targets = new Map<string, Promise<unknown>>()
/** What the client printed and the dashboard showed, by drop. */
const printed = new Map<string, string>()
const shown = new Map<string, string>()

beforeAll(async () => {
  const [httpPort] = (await freePorts(1)) as [number]
  pebble = await startPebble({ challengePort: httpPort, nonceReject: 0 })
  // The service's own records: its address is known without a setting.
  await pebble.dns.a('localhost', '127.0.0.1')
  await pebble.dns.a('elsewhere.test', '127.0.0.9')
  await pebble.dns.a('slug.localhost', '127.0.0.1')
  await pebble.dns.a('t-0123456789abcdef.localhost', '127.0.0.1')
  ;[stack, cli] = await Promise.all([
    startStack({
      database: 'shared',
      operator: true,
      env: {
        EDGE_BIND: '127.0.0.1',
        EDGE_HTTP_PORT: String(httpPort),
        ACME_DIRECTORY_URL: pebble.directoryUrl,
        ACME_CA_FILE: pebble.caFile,
        CAA_IDENTITIES: 'our-ca.test',
        DNS_RESOLVER: pebble.dnsResolver,
        DOMAIN_CHECK_INTERVAL: '5s',
      },
    }),
    openCli(),
  ])
  await writeFile(path.join(cli.folder, 'ca.pem'), stack.ca)
  stranger = http.createServer((_, response) => response.writeHead(404, { server: 'stranger/1.0' }).end('not here'))
  stranger.listen(httpPort, '127.0.0.9')
  await once(stranger, 'listening')

  const people: Person[] = []
  for (let index = 0; index < Math.ceil(lived.length / DOMAINS_PER_PERSON); index++) people.push(await newPerson())
  rivals = [await newPerson()]
  await forAll([...lived.entries()], ([index, situation]) =>
    live(situation, index, people[Math.floor(index / DOMAINS_PER_PERSON)]!),
  )
  for (const { account, site, browser } of people) {
    const env = {
      DROPWAY_URL: stack.baseUrl,
      DROPWAY_CA_FILE: path.join(cli.folder, 'ca.pem'),
      DROPWAY_TOKEN: account.token,
    }
    printed.set(site.id, (await cli.run(['domains', 'list', '--drop', site.id], { env })).stdout)
    shown.set(site.id, (await browser.open(`/sites/${site.id}/domains`)).text())
    const list = (await stack.fetch(`/api/v1/sites/${site.id}/domains`, { token: account.token })).json<View[]>()
    for (const one of told.values()) one.view = list.find(({ domain }) => domain === one.view.domain) ?? one.view
  }
  await forAll([...told.values()], follow)
})

afterAll(async () => {
  stranger?.close()
  await Promise.all([stack?.stop(), pebble?.stop(), cli?.remove()])
})

async function newPerson(): Promise<Person> {
  const account = await stack.createAccount('business', { password: PASSWORD })
  const site = await stack.publish(account, '<title>Doctor</title>')
  const browser = new FormBrowser(stack, '203.0.113.80')
  expect((await browser.send('/signin', { email: account.email, password: PASSWORD })).status).toBe(303)
  return { account, site, browser }
}

async function forAll<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const queue = [...items]
  const next = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
}

async function call({ account, site }: Person, method: string, target: string, json?: object): Promise<View> {
  const answer = await stack.fetch(`/api/v1/sites/${site.id}/domains${target}`, {
    token: account.token,
    method,
    ...(json && { json }),
  })
  expect(answer.status, answer.text()).toBeLessThan(300)
  const view = answer.json<View>()
  // The service's own zone has a wildcard for all targets. Once each: others of the same drop look at it meanwhile.
  const lines = view.alternative === null ? view.records : [...view.records, view.alternative]
  for (const { type, value, action } of lines)
    if ((type === 'CNAME' || type === 'ALIAS') && action !== 'remove' && /^t-[0-9a-f]{16}\./.test(value)) {
      if (!targets.has(value)) targets.set(value, pebble.dns.a(value, '127.0.0.1'))
      await targets.get(value)
    }
  return view
}

const check = (person: Person, domain: string): Promise<View> => call(person, 'POST', `/${domain}/check`)

async function untilActive(person: Person, domain: string): Promise<View> {
  for (let attempt = 0; ; attempt++) {
    const view = await check(person, domain)
    if (view.state === 'active' || attempt === MOST_CHECKS) return view
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
}

async function live(situation: Situation, index: number, person: Person): Promise<void> {
  const origin = `zone${index}.test`
  const whole = (host: string): string =>
    host === '@' ? origin : host.endsWith('.@') ? `${host.slice(0, -1)}${origin}.${origin}` : `${host}.${origin}`
  const zone = openZone(pebble.dns, (name) =>
    name === 'elsewhere.test' ? ['127.0.0.9'] : name.endsWith('localhost') ? ['127.0.0.1'] : [],
  )
  const typed = whole(situation.host)
  const change = async (text: string, view?: View): Promise<void> => {
    const [sign, host, type, ...rest] = text.split(' ') as ['+' | '-', string, ZoneType, ...string[]]
    const value = fill(rest.join(' '), origin, view)
    if (sign === '+') await zone.add(whole(host), type, value)
    else await zone.remove(whole(host), type)
  }
  for (const text of situation.zone ?? []) await change(`+ ${text}`)
  for (const host of situation.servfail ?? []) await zone.servfail(whole(host))
  if (situation.heldBy) {
    const held = await call(rivals[0]!, 'POST', '', { domain: typed, pair: false })
    await zone.follow(held.records)
    expect(await untilActive(rivals[0]!, held.domain)).toMatchObject({ state: 'active' })
  }
  let view = await call(person, 'POST', '', { domain: typed, pair: false })
  const { domain } = view
  for (const step of situation.next ?? []) {
    if (step === 'cname') await zone.follow(view.records.filter(({ type }) => type === 'CNAME'))
    else if (step === 'proof') await zone.follow(view.records.filter(({ type }) => type === 'TXT'))
    else if (step === 'active') view = await untilActive(person, domain)
    else await change(step, view)
  }
  if (situation.next) view = await check(person, domain)
  told.set(situation.name, { typed, zone, person, view })
}

/** What is random, and the zone in a value. */
function fill(value: string, origin: string, view: View | undefined): string {
  const line = (type: string): string => view?.records.find((one) => one.type === type)?.value ?? ''
  return value
    .replace('<target>', () => line('CNAME') || (view?.alternative?.value ?? ''))
    .replace('<alias>', () => view?.alternative?.value ?? '')
    .replace('<proof>', () => line('TXT'))
    .replace(/@$/, origin)
}

async function follow(one: Told): Promise<void> {
  await one.zone.follow(one.view.records)
  await one.zone.heal()
  one.after = await untilActive(one.person, one.view.domain)
}

function plainLine({ action, host, type, value }: Line): string {
  const plain = value
    .replace(/^t-[0-9a-f]{16}\.localhost$/, '<target>')
    .replace(/^dropway-verify=[0-9a-f]{32}$/, '<proof>')
    .replace(/^dropway-transfer=[0-9a-f]{32}$/, '<transfer>')
  return `${action} ${host} ${type} ${plain}`
}

describe.each(lived)('$name', (situation) => {
  const one = (): Told => told.get(situation.name)!

  test('is told what is wrong, and the lines that mend it', () => {
    const { view } = one()
    expect([view.state, view.reason], view.detail).toEqual([situation.state, situation.reason])
    expect(view.records.map(plainLine)).toEqual(situation.lines)
    if (situation.says) expect(view.detail).toMatch(situation.says)
    if (situation.warns) expect(view.warnings.join('\n')).toMatch(situation.warns)
    else expect(view.warnings).toEqual([])
  })

  test('reads the same in the client and in the dashboard', () => {
    const { view, person } = one()
    const rows = view.records.map(({ action, host, type, value, found }) => {
      const isRemoved = action === 'remove'
      return { action, host, type, wanted: isRemoved ? 'nothing' : value, found: isRemoved ? [value] : found }
    })
    const name = view.unicode === null ? view.domain : `${view.unicode} (${view.domain})`
    const block = blockOf(printed.get(person.site.id)!, `${name}  `)
    expect(block[0]).toBe(`${name}  ${view.state}  ${view.detail}`.trimEnd())
    expect(block.slice(1).map((line) => line.trim().split(/ {2,}/))).toEqual(
      expect.arrayContaining(
        rows.map(({ action, host, type, wanted, found }) => [
          action,
          host,
          type,
          wanted,
          found.join(', ') || 'nothing',
        ]),
      ),
    )
    const card = cardOf(shown.get(person.site.id)!, view.domain)
    expect(tableOf(card)).toEqual(
      rows.map(({ action, host, type, wanted, found }) => [
        { add: 'Add', replace: 'Change', remove: 'Remove' }[action],
        host,
        type,
        wanted,
        found.join(' ') || 'nothing',
      ]),
    )
    const words = textOf(card)
    for (const sentence of [view.detail, ...view.warnings]) expect(words).toContain(sentence)
    if (view.unicode !== null) for (const form of [view.unicode, view.domain]) expect(words).toContain(form)
  })

  test('is active once exactly that is done', () => {
    expect(one().after).toMatchObject({ state: 'active', reason: null, records: [], warnings: [] })
  })
})

test('there are at least forty', () => expect(situations.length).toBeGreaterThanOrEqual(40))

/** The lines of one domain in the client's output. */
function blockOf(output: string, start: string): string[] {
  const lines = output.split('\n')
  const first = lines.findIndex((line) => line.startsWith(start))
  const rest = lines.slice(first + 1)
  const end = rest.findIndex((line) => !line.startsWith('  '))
  return [lines[first]!, ...rest.slice(0, end === -1 ? undefined : end)]
}

function cardOf(page: string, domain: string): string {
  return page.split('<section class="card"').find((part) => part.startsWith(` aria-label="${domain}"`))!
}

function tableOf(card: string): string[][] {
  const rows = [
    ...card
      .split('<tbody>')
      .slice(1)
      .join('')
      .split('</tbody>')[0]!
      .matchAll(/<tr>(.*?)<\/tr>/gs),
  ]
  return rows.map(([, row]) =>
    [...row!.matchAll(/<(td|th)[^>]*>(.*?)<\/\1>/gs)].map(([, , cell]) =>
      textOf(cell!.replace(/<button.*?<\/button>/gs, '')).trim(),
    ),
  )
}

function textOf(markup: string): string {
  return markup
    .replace(/<br>/g, ' ')
    .replace(/<[^>]*>/g, '')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}
