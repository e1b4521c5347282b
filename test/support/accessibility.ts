/** axe-core in a page that is open: what it calls serious or critical, as sentences. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly impact: string | null
    readonly help: string
    readonly nodes: readonly { readonly html: string }[]
  }[]
}

const RULES = {
  all: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'] },
  contrast: { type: 'rule', values: ['color-contrast'] },
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** `contrast` checks only what the colour scheme changes. */
export async function seriousViolations(page: Page, scope: 'all' | 'contrast' = 'all'): Promise<string[]> {
  // Through the debugger, not through the page: its policy would refuse a script of ours.
  await page.evaluate(AXE)
  const result = (await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(RULES[scope])}, iframes: false })`,
  )) as AxeResult
  return result.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help} (${nodes.map((node) => node.html.slice(0, 120)).join(' | ')})`)
}
