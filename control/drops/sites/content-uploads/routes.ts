/** `PUT /api/v1/content/<signed id>`: the address is the credential; it takes one file. */
import { json } from '../../../ground/http/reply.ts'
import { paramsOf, type Route } from '../../../ground/http/route.ts'
import { CONTENT_PATH, type ContentUploads } from './content-uploads.ts'

const PATH = `${CONTENT_PATH}/:token` as const

export function contentUploadRoutes({ contentUploads }: { contentUploads: Pick<ContentUploads, 'receive'> }): Route[] {
  return [
    {
      method: 'PUT',
      path: PATH,
      operation: {
        summary: 'Send a file to an address that the MCP tool service_upload gave',
        tags: ['Versions'],
        security: [],
        responses: { 201: { description: 'Success' } },
      },
      handle: async (request) =>
        json(201, await contentUploads.receive(paramsOf(PATH, request).token, request.stream())),
    },
  ]
}
