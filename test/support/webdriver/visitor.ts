/** A person at a browser that is not Chromium: finds things by what is written on them, and waits until they are there. */
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { nextAddress } from '../addresses.ts'
import { FormBrowser } from '../form-browser.ts'
import type { Stack } from '../stack.ts'
import { ELEMENT_KEY, RefusedByBrowser, type Driver, type DriverOptions } from './driver.ts'
import { startFirefox } from './firefox.ts'
import { startWebKit } from './webkit.ts'

export const ENGINES = { Firefox: startFirefox, WebKit: startWebKit }
export type Engine = keyof typeof ENGINES

/** Patience on a busy machine: only what never comes meets it. */
const PATIENCE_MS = 45_000
const LOOK_AGAIN_MS = 100

export const KEYS = { tab: '\uE004', enter: '\uE007' }

export interface Person {
  goto(pathOrUrl: string): Promise<void>
  address(): Promise<string>
  /** Waits until these words are on the screen. */
  see(words: string): Promise<void>
  /** Waits until they are not, or no longer. */
  miss(words: string): Promise<void>
  fill(label: string, text: string): Promise<void>
  choose(label: string, option: string): Promise<void>
  /** What stands in a field now. */
  valueOf(label: string): Promise<string>
  press(button: string): Promise<void>
  follow(link: string): Promise<void>
  /** Gives a file of this machine to the page's field for files. */
  give(file: string, css?: string): Promise<void>
  /** Types with the keyboard, wherever the focus is. */
  type(keys: string): Promise<void>
  /** The body of a function in the page. */
  script(body: string, ...args: readonly unknown[]): Promise<unknown>
  /** Acts in a frame, and in the one that replaces it meanwhile; afterwards in the page again. */
  inFrame<Value>(css: string, act: () => Promise<Value>): Promise<Value>
  forgetCookies(): Promise<void>
  beSignedIn(email: string, password: string): Promise<void>
  /** Words and elements that are wider than the window; empty where everything fits. */
  tooWide(): Promise<string[]>
  problems(): Promise<string[]>
  keepScreenshot(name: string): Promise<void>
  close(): Promise<void>
}

/** XPath 1.0 has no way to write both quotes in one literal. */
const literal = (text: string): string =>
  `concat(${text
    .split("'")
    .map((part) => `'${part}'`)
    .join(`, "'", `)}, '')`
const named = (text: string): string => `[normalize-space(.)=${literal(text)} or @aria-label=${literal(text)}]`
const field = (label: string): string =>
  `//*[self::input or self::textarea or self::select][@aria-label=${literal(label)} or @id=//label[starts-with(normalize-space(.), ${literal(label)})]/@for or ancestor::label[starts-with(normalize-space(.), ${literal(label)})]]`
const saying = (words: string): string =>
  `//body//*[contains(normalize-space(.), ${literal(words)})][not(*[contains(normalize-space(.), ${literal(words)})])]`

export async function openPerson(engine: Engine, stack: Stack, options: Partial<DriverOptions> = {}): Promise<Person> {
  const driver = await ENGINES[engine]({ width: 1280, cookies: true, javaScript: true, ...options })
  return personAt(driver, stack)
}

function personAt(driver: Driver, stack: Stack): Person {
  const { command } = driver
  /** The frame that is acted in. */
  let within: string | undefined

  /** Goes into the frame that is there at this moment: the one before may be gone, and all commands to it with it. */
  async function enter(css: string): Promise<true | undefined> {
    await command('SwitchToFrame', { id: null })
    const [frame] = (await command('FindElements', { using: 'css selector', value: css })) as object[]
    if (frame === undefined) return undefined
    await command('SwitchToFrame', { id: frame })
    return true
  }

  /** The first element of these that is on the screen. */
  async function shown(xpath: string): Promise<string | undefined> {
    const found = (await command('FindElements', { using: 'xpath', value: xpath })) as Record<string, string>[]
    for (const element of found) {
      const id = element[ELEMENT_KEY]!
      if (await command('IsElementDisplayed', { id })) return id
    }
    return undefined
  }

  /** A page that is being replaced refuses for a moment what it is asked. */
  async function until<Value>(what: string, ask: () => Promise<Value | undefined>): Promise<Value> {
    const end = performance.now() + PATIENCE_MS
    let refusal = ''
    while (performance.now() < end) {
      try {
        const value = await ask()
        if (value !== undefined) return value
      } catch (error) {
        if (!(error instanceof RefusedByBrowser)) throw error
        refusal = ` (${error.message})`
        if (within !== undefined) await enter(within).catch(ignoreRefusal)
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
    }
    await command('SwitchToFrame', { id: null })
    throw new Error(`${what} did not come${refusal}; the page at ${await address()} says:\n${await words()}`)
  }

  const address = async (): Promise<string> => (await command('GetCurrentURL')) as string
  async function words(): Promise<string> {
    const [body] = (await command('FindElements', { using: 'xpath', value: '//body' })) as Record<string, string>[]
    return body === undefined ? '' : ((await command('GetElementText', { id: body[ELEMENT_KEY] })) as string)
  }
  const act = (what: string, xpath: string, then: (id: string) => Promise<unknown>): Promise<unknown> =>
    until(what, async () => {
      const id = await shown(xpath)
      if (id === undefined) return undefined
      await then(id)
      return true
    })
  const click = (what: string, xpath: string) => act(what, xpath, (id) => command('ElementClick', { id }))
  const script: Person['script'] = (body, ...args) => command('ExecuteScript', { script: body, args })

  return {
    goto: async (target) => {
      const url = target.startsWith('/') ? stack.baseUrl + target : target
      await command('Navigate', { url }).catch((error: unknown) => {
        throw new Error(`${url} was not opened`, { cause: error })
      })
    },
    address,
    see: async (text) => void (await act(`"${text}"`, saying(text), async () => {})),
    miss: async (text) =>
      void (await until(`the end of "${text}"`, async () =>
        (await shown(saying(text))) === undefined ? true : undefined,
      )),
    fill: async (label, text) => {
      await act(`the field "${label}"`, field(label), async (id) => {
        await command('ElementClear', { id })
        // A new line is a key, which not every driver knows from the character.
        const keys = text.replaceAll('\n', KEYS.enter)
        await command('ElementSendKeys', { id, text: keys, value: [...keys] })
      })
    },
    choose: async (label, option) => {
      await click(
        `the choice "${option}" of "${label}"`,
        `${field(label)}/option[starts-with(normalize-space(.), ${literal(option)})]`,
      )
    },
    valueOf: async (label) => {
      let value = ''
      await act(`the field "${label}"`, field(label), async (id) => {
        value = (await command('GetElementProperty', { id, name: 'value' })) as string
      })
      return value
    },
    press: async (button) => void (await click(`the button "${button}"`, `//button${named(button)}`)),
    follow: async (link) => void (await click(`the link "${link}"`, `//a${named(link)}`)),
    give: async (file, css = 'input[type=file]') => {
      const [input] = (await command('FindElements', { using: 'css selector', value: css })) as Record<string, string>[]
      await command('ElementSendKeys', { id: input![ELEMENT_KEY], text: file, value: [...file] })
    },
    type: async (keys) => {
      const focused = (await command('GetActiveElement')) as Record<string, string>
      await command('ElementSendKeys', { id: focused[ELEMENT_KEY], text: keys, value: [...keys] })
    },
    script,
    inFrame: async (css, acting) => {
      await until(`the frame ${css}`, () => enter(css))
      within = css
      try {
        return await acting()
      } finally {
        within = undefined
        await command('SwitchToFrame', { id: null })
      }
    },
    forgetCookies: async () => void (await command('DeleteAllCookies')),
    beSignedIn: async (email, password) => {
      const forms = new FormBrowser(stack, nextAddress())
      const answer = await forms.send('/signin', { email, password })
      if (answer.status !== 303) throw new Error(`signing in answered ${answer.status}`)
      // Cookies are taken for the site that is open; this is its lightest page.
      await command('Navigate', { url: `${stack.baseUrl}/healthz` })
      for (const [name, value] of forms.cookies)
        await command('AddCookie', {
          cookie: { name, value, path: '/', secure: true, httpOnly: true, sameSite: 'Lax' },
        })
    },
    tooWide: async () => (await script(TOO_WIDE)) as string[],
    problems: () => driver.problems(),
    keepScreenshot: async (name) => {
      if (process.env['SCREENSHOTS'] === '1') writeScreenshot(name, (await command('TakeScreenshot')) as string)
    },
    close: () => driver.close(),
  }
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof RefusedByBrowser)) throw error
}

const TOO_WIDE = `
  const width = document.documentElement.clientWidth
  if (document.documentElement.scrollWidth <= width) return []
  const wide = [...document.body.querySelectorAll('*')].filter((each) => each.getBoundingClientRect().right > width + 1)
  return ['the page is ' + document.documentElement.scrollWidth + ' of ' + width,
    ...wide.slice(0, 3).map((each) => each.outerHTML.slice(0, 80))]`

const OUTPUT = fileURLToPath(new URL('../../output/screenshots/', import.meta.url))

/** With SCREENSHOTS=1, so that a person can look at what the tests saw. WebKit does not always come to an end with it. */
function writeScreenshot(name: string, base64: string): void {
  mkdirSync(OUTPUT, { recursive: true })
  writeFileSync(path.join(OUTPUT, `${name}.png`), Buffer.from(base64, 'base64'))
}
