/** The templates on offer, in the order they are shown. */
import { cv } from './cv.ts'
import { invite } from './invite.ts'
import { links } from './links.ts'
import { portfolio } from './portfolio.ts'
import type { Template } from './template.ts'

export const templates: readonly Template[] = [cv, portfolio, links, invite]

export function findTemplate(name: string | undefined): Template | undefined {
  return templates.find((template) => template.name === name)
}
