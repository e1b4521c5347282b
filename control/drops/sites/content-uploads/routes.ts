/** `PUT /api/v1/content/<signed id>`: the address is the credential; it takes one file. */
import { json } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import { CONTENT_PATH, type ContentUploads } from './content-uploads.ts'

export function contentUploadRoutes({ contentUploads }: { contentUploads: Pick<ContentUploads, 'receive'> }): Route[] {
  return [
    {
      method: 'PUT',
      path: `${CONTENT_PATH}/:token`,
      operation: {
        summary: 'Send a file to an address that the MCP tool service_upload gave',
        tags: ['Versions'],
        security: [],
        responses: { 201: { description: 'Success' } },
      },
      handle: async (request) => json(201, await contentUploads.receive(request.params['token']!, request.stream())),
    },
  ]
}
