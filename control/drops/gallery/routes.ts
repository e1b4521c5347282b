import { z } from 'zod'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import type { Route } from '../../ground/http/route.ts'
import type { Gallery } from './gallery.ts'

const entrySchema = z.object({
  slug: z.string(),
  title: z.string(),
  url: z.string(),
  views: z.int(),
  published_at: z.iso.datetime(),
})

export function galleryRoutes({
  apiRoute,
  gallery,
}: {
  apiRoute: ApiRouteFactory
  gallery: Pick<Gallery, 'list'>
}): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/gallery',
      access: 'public',
      tag: 'Gallery',
      summary: 'Drops whose owners want to be seen',
      status: 200,
      query: z.strictObject({ order: z.enum(['newest', 'popular']).default('newest') }),
      output: z.array(entrySchema),
      run: async ({ query }) => [...(await gallery.list(query.order))],
    }),
  ]
}
