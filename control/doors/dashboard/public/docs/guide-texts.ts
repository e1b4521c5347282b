/** The guides as they are written: for the pages of `/docs`, and for assistants, which read them over MCP. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { withoutFrontMatter } from '../../../../drops/publishing/markdown/front-matter.ts'
import { filledIn, type Facts } from '../markdown-text.ts'

const FOLDER = path.join(import.meta.dirname, 'guides')

/** In reading order; each is a file of `guides/`. */
export const GUIDES = [
  'quick-start',
  'command-line',
  'assistants',
  'review',
  'continuous-integration',
  'custom-domains',
  'redirects-and-headers',
  'single-page-apps',
  'privacy',
  'errors',
] as const
export type GuideName = (typeof GUIDES)[number]

export interface GuideText {
  readonly name: string
  readonly title: string
  /** Markdown, with the facts of this service filled in. */
  readonly text: string
}

export function sourceOf(name: GuideName): string {
  return readFileSync(path.join(FOLDER, `${name}.md`), 'utf8')
}

export function readGuides(facts: Facts): readonly GuideText[] {
  return GUIDES.map((name) => {
    const text = withoutFrontMatter(filledIn(sourceOf(name), facts)).trimStart()
    return { name, title: /^# (.+)/.exec(text)?.[1] ?? name, text }
  })
}
