/**
 * What is wrong with a page that is open, as sentences: what axe-core calls serious or critical and, in the deep run, what
 * IBM's engine calls a violation.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { IS_DEEP } from './depth.ts'

interface AceFinding {
  readonly ruleId: string
  readonly message: string
  readonly snippet: string
}

type Scope = 'all' | 'contrast'

const AXE_RULES = {
  all: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'] },
  contrast: { type: 'rule', values: ['color-contrast'] },
}

/** The stricter set of IBM's engine: WCAG 2.2 A and AA, and its own requirements. */
const ACE_GUIDELINE = 'IBM_Accessibility'

const require = createRequire(import.meta.url)
const ENGINES = {
  axe: readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'),
  ace: readFileSync(require.resolve('accessibility-checker-engine/ace.js'), 'utf8'),
}

/** Where a rule of IBM's engine contradicts the standard that it is about: the elements, and why. */
const WRONG = [
  {
    rules: ['aria_form_label_unique', 'aria_landmark_name_unique'],
    at: 'form:not([aria-label], [aria-labelledby])',
    reason: 'A form without a name is no landmark (HTML-AAM 1.0, form), so there is nothing to tell apart.',
  },
  {
    rules: ['input_autocomplete_valid'],
    at: 'input[type=email][autocomplete=username]',
    reason: 'Both belong to the control group "Username" (HTML, autofill field names).',
  },
  {
    rules: ['element_tabbable_role_valid'],
    at: 'pre[tabindex="0"], .diff[tabindex="0"]',
    reason: 'What scrolls sideways on a narrower screen has to be reachable by keyboard (WCAG 2.1.1; Safari).',
  },
] as const

/**
 * What is folded is looked at as well. `contrast` checks only what the colour scheme changes, with axe alone: the
 * second engine would take as long as for all of its rules, and sees the other scheme at the other width.
 */
export async function seriousViolations(
  page: Page,
  scope: Scope = 'all',
  engines: 'first' | 'both' = IS_DEEP ? 'both' : 'first',
): Promise<string[]> {
  await page.evaluate(`for (const each of document.querySelectorAll('details:not([open])')) {
    each.open = true
    each.dataset.unfolded = ''
  }`)
  const found = await axeViolations(page, scope)
  if (scope === 'all' && engines === 'both') found.push(...(await aceViolations(page)))
  await page.evaluate(`for (const each of document.querySelectorAll('details[data-unfolded]')) {
    each.open = false
    delete each.dataset.unfolded
  }`)
  return found
}

async function axeViolations(page: Page, scope: Scope): Promise<string[]> {
  await bring(page, 'axe')
  // Only the sentences leave the page: what is in order is a thousand times as much, and slow to collect and to send.
  return await page.evaluate<string[]>(`(async () => {
    const options = { runOnly: ${JSON.stringify(AXE_RULES[scope])}, iframes: false, resultTypes: ['violations'] }
    const { violations } = await axe.run(document, options)
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, help, nodes }) => id + ': ' + help + ' (' + nodes.map((node) => node.html.slice(0, 120)).join(' | ') + ')')
  })()`)
}

export async function aceViolations(page: Page): Promise<string[]> {
  await bring(page, 'ace')
  const found = (await page.evaluate(`(async () => {
    const { results } = await new ace.Checker().check(document, ['${ACE_GUIDELINE}'])
    const isWrong = ({ ruleId, node }) =>
      ${JSON.stringify(WRONG)}.some(({ rules, at }) => rules.includes(ruleId) && node.matches?.(at))
    return results
      .filter(({ value: [kind, outcome] }) => kind === 'VIOLATION' && outcome === 'FAIL')
      .filter((result) => !isWrong(result))
      .map(({ ruleId, message, snippet }) => ({ ruleId, message, snippet }))
  })()`)) as AceFinding[]
  return found.map(({ ruleId, message, snippet }) => `${ruleId}: ${message} (${snippet.slice(0, 120)})`)
}

/** Through the debugger, not through the page, whose policy would refuse a script of ours; once for each visit. */
async function bring(page: Page, engine: keyof typeof ENGINES): Promise<void> {
  if ((await page.evaluate(`typeof ${engine}`)) === 'undefined') await page.evaluate(ENGINES[engine])
}
