/** Single-file publishing: which files it takes. */
import { errors } from '../../../../shared/errors.ts'
import { extensionOf } from './types.ts'

export type SingleKind = 'html' | 'markdown'

const KINDS: ReadonlyMap<string, SingleKind> = new Map([
  ['html', 'html'],
  ['htm', 'html'],
  ['md', 'markdown'],
  ['markdown', 'markdown'],
])

export function singleKindOf(filename: string): SingleKind {
  const kind = KINDS.get(extensionOf(filename) ?? '')
  if (!kind) throw errors.unsupportedFileType(filename)
  return kind
}
