/** What search engines ask for: robots.txt and the sitemap. */
import { escape } from '../../../../../shared/pages/html.ts'
import type { Reply, Route } from '../../../../ground/http/route.ts'

/** For one person, or of no use in a search. */
const NOT_FOR_CRAWLERS = ['/account', '/api/', '/claim', '/oauth/', '/report', '/reset', '/sites', '/staff']

export function crawlerRoutes(baseUrl: string, paths: readonly string[]): Route[] {
  const rules = ['User-agent: *', ...NOT_FOR_CRAWLERS.map((path) => `Disallow: ${path}`)]
  const robots = [...rules, '', `Sitemap: ${baseUrl}/sitemap.xml`, ''].join('\n')
  const entries = paths.map((path) => `  <url><loc>${escape(baseUrl + path)}</loc></url>`)
  const sitemap = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
    ...entries,
    '</urlset>',
    '',
  ].join('\n')
  return [
    { method: 'GET', path: '/robots.txt', handle: () => cacheable('text/plain; charset=utf-8', robots) },
    { method: 'GET', path: '/sitemap.xml', handle: () => cacheable('application/xml; charset=utf-8', sitemap) },
  ]
}

function cacheable(type: string, body: string): Reply {
  return { status: 200, headers: { 'content-type': type, 'cache-control': 'public, max-age=3600' }, body }
}
