/** Documents for agents at the addresses where they look: /llms.txt, /llms-full.txt, /auth.md, the server card. */
import { programNameOf } from '../../../shared/pages/look.ts'
import type { ControlConfig } from '../../ground/config.ts'
import { json } from '../../ground/http/reply.ts'
import type { Reply, Route } from '../../ground/http/route.ts'
import { authGuide, serverCard, serviceLlmsFull, serviceLlmsTxt, type FoundFacts } from './documents.ts'

/** Nothing in them is about a caller: any page may read them. */
const OPEN = { 'access-control-allow-origin': '*', 'cache-control': 'max-age=300' }

export function foundRoutes({
  config,
  guides,
}: {
  config: Pick<ControlConfig, 'baseUrl' | 'look' | 'mcpAnonymous'>
  guides: FoundFacts['guides']
}): Route[] {
  const facts: FoundFacts = { ...config, guides }
  const card = serverCard(facts, programNameOf(config.look))
  const text = (path: string, type: string, body: string): Route => ({
    method: 'GET',
    path,
    worksWithoutDatabase: true,
    handle: (): Reply => ({ status: 200, headers: { ...OPEN, 'content-type': `${type}; charset=utf-8` }, body }),
  })
  return [
    {
      method: 'GET',
      path: '/.well-known/mcp/server-card.json',
      worksWithoutDatabase: true,
      handle: () => json(200, card, OPEN),
    },
    text('/llms.txt', 'text/plain', serviceLlmsTxt(facts)),
    text('/llms-full.txt', 'text/plain', serviceLlmsFull(facts)),
    text('/auth.md', 'text/markdown', authGuide(facts)),
  ]
}
