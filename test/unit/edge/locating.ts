/** A site to ask for paths of, and what came of it in one word. */
import type { Intent } from '../../../edge/context.ts'
import { locate } from '../../../edge/locate/locate.ts'
import { indexManifest } from '../../../edge/locate/site-index.ts'
import { manifestOf } from '../../support/manifests.ts'
import type { Rules } from '../../support/manifests.ts'

export const FILES = ['index.html', 'about.html', 'about/index.html', 'blog/index.html', 'page.html'] as const
export const MORE = [
  ...FILES,
  'app.js',
  'LICENSE',
  '.env',
  '.well-known/security.txt',
  'old.htm',
  'docs/index.html',
  'docs/404.html',
  'docs/deep/x.html',
  'with space.html',
  'übersicht.html',
  'ordner ü/index.html',
  'a#b.html',
  'q?x.html',
  '100%.html',
  '__proto__',
  'constructor.html',
  '_redirects',
  '.dropway/x.html',
] as const

export interface Options {
  readonly spa?: boolean
  readonly dest?: string
  readonly files?: readonly string[]
  readonly rules?: Rules
}

export function ask(target: string, { spa = false, dest, files = MORE, rules = {} }: Options = {}): Intent {
  return locate(indexManifest(manifestOf(files, rules)), { target, spaFallback: spa, fetchDest: dest })
}

/** One word for an intent: `200 page.html`, `301 /about/`, `404`, `400`. */
export function answer(target: string, options: Options = {}): string {
  const intent = ask(target, options)
  switch (intent.kind) {
    case 'asset':
      return `${intent.status} ${intent.path}`
    case 'redirect':
      return `${intent.status} ${intent.location}`
    case 'missing':
      return '404'
    case 'malformed':
      return '400'
    default:
      return intent satisfies never
  }
}
