import { z } from 'zod'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import { described } from '../../ground/http/operations/described.ts'
import type { Route } from '../../ground/http/route.ts'
import type { Gallery } from './gallery.ts'

const entrySchema = z.object({
  slug: described(z.string(), 'The name in its address.', 'my-page'),
  title: described(z.string(), 'Title of the page.', 'Hello'),
  url: described(z.string(), 'Its address.', 'https://my-page.dropway.example'),
  views: described(z.int(), 'How often it was seen.', 128),
  published_at: described(z.iso.datetime(), 'When content last went live.', '2026-11-15T09:00:00.000Z'),
  card_url: described(z.string().nullable(), 'A picture of it with its title; null while there is none.', null),
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
      needs: 'nothing',
      tag: 'Gallery',
      summary: 'Drops whose owners want to be seen',
      status: 200,
      query: z.strictObject({
        order: described(z.enum(['newest', 'popular']).default('newest'), 'Which come first.', 'popular'),
      }),
      output: z.array(entrySchema),
      run: async ({ query }) => [...(await gallery.list(query.order))],
    }),
  ]
}
