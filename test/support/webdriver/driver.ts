/**
 * What a browser is told to do, in the words of W3C WebDriver, which stock Firefox and stock WebKit both understand: the
 * former over Marionette, its own socket, the latter over HTTP.
 */

/** Command → how it is asked over HTTP. The names are those of Marionette. */
export const COMMANDS = {
  Navigate: ['POST', '/url'],
  GetCurrentURL: ['GET', '/url'],
  FindElements: ['POST', '/elements'],
  IsElementDisplayed: ['GET', '/element/{id}/displayed'],
  ElementClick: ['POST', '/element/{id}/click'],
  ElementClear: ['POST', '/element/{id}/clear'],
  ElementSendKeys: ['POST', '/element/{id}/value'],
  GetElementText: ['GET', '/element/{id}/text'],
  GetElementProperty: ['GET', '/element/{id}/property/{name}'],
  ExecuteScript: ['POST', '/execute/sync'],
  GetActiveElement: ['GET', '/element/active'],
  SwitchToFrame: ['POST', '/frame'],
  AddCookie: ['POST', '/cookie'],
  DeleteAllCookies: ['DELETE', '/cookie'],
  TakeScreenshot: ['GET', '/screenshot'],
} as const satisfies Readonly<Record<string, readonly ['GET' | 'POST' | 'DELETE', string]>>

export type Command = keyof typeof COMMANDS

export interface DriverOptions {
  /** How wide pages are, in CSS pixels. */
  readonly width: number
  readonly cookies: boolean
  readonly javaScript: boolean
}

export interface Driver {
  /** Resolves to the value of the answer; throws what the browser refused, in its words. */
  command(command: Command, parameters?: Readonly<Record<string, unknown>>): Promise<unknown>
  /** Errors of scripts and refusals by content security policies since the start. */
  problems(): Promise<string[]>
  close(): Promise<void>
}

/** Under this key WebDriver names an element (https://www.w3.org/TR/webdriver2/#elements). */
export const ELEMENT_KEY = 'element-6066-11e4-a52e-4f735466cecf'

export class RefusedByBrowser extends Error {}

/** Asks until there is an answer; a start that hangs is told. */
export async function untilThere<Value>(what: string, ask: () => Promise<Value | undefined>): Promise<Value> {
  for (let attempt = 0; attempt < 600; attempt++) {
    const value = await ask().catch(() => undefined)
    if (value !== undefined) return value
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`${what} did not come`)
}
