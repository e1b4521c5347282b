/** What this checkout would be listed with, put together without a running service. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { HOUSE_LOOK } from '../../../shared/pages/look.ts'
import { serviceLlmsTxt } from '../../doors/found/documents.ts'
import { readCard } from '../../doors/mcp/card/result-card.ts'
import { LISTED_TOOLS } from '../../doors/mcp/server.ts'
import type { ClientPackage, ListedTool } from './rules.ts'

const ROOT = path.join(import.meta.dirname, '../../..')

export const listedTools: readonly ListedTool[] = LISTED_TOOLS

export function readFromRoot(...parts: string[]): string {
  return readFileSync(path.join(ROOT, ...parts), 'utf8')
}

export function clientPackage(): ClientPackage {
  return JSON.parse(readFromRoot('cli', 'package.json')) as ClientPackage
}

const SAMPLE = {
  baseUrl: 'https://dropway.example',
  sitesDomain: 'dropway.example',
  publicPort: undefined,
  look: HOUSE_LOOK,
}

export function sampleCard(): { text: string; csp: Record<string, string[]> } {
  const [page] = readCard(SAMPLE).contents
  const { ui } = (page?._meta ?? {}) as { ui: { csp: Record<string, string[]> } }
  return { text: String(page && 'text' in page ? page.text : ''), csp: ui.csp }
}

export function sampleLlmsTxt(): string {
  const guides = [{ name: 'quick-start', title: 'Quick start', text: '# Quick start\n\nPublish a page.\n' }]
  return serviceLlmsTxt({ ...SAMPLE, mcpAnonymous: true, guides })
}
