/** The page as every script here knows it: `w` is its window, with what the trackers leave there, and `d` its document. */
declare global {
  const w: PageWindow
  const d: Document
}

interface PageWindow extends Window {
  fbq?: MetaPixel
  _fbq?: MetaPixel
}

/** A queue until Meta's script has come, which then sets `callMethod`. */
export interface MetaPixel {
  (...command: unknown[]): void
  callMethod?: (...command: unknown[]) => void
  push?: MetaPixel
  queue: unknown[]
  loaded: boolean
  version: string
}
