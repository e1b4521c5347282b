/** `PUT /api/v1/content/<signed id>`: the address is the credential; it takes one file. */
import { z } from 'zod'
import { described } from '../../../../ground/http/operations/described.ts'
import { describeOperation } from '../../../../ground/http/operations/operation.ts'
import { json } from '../../../../ground/http/reply.ts'
import { paramsOf, type Route } from '../../../../ground/http/route.ts'
import { CONTENT_PATH, type ContentUploads } from './content-uploads.ts'

const PATH = `${CONTENT_PATH}/:token` as const

const sentSchema = z.object({
  upload: described(z.string(), 'What a publish names it by.', 'upl_3ka81hd7q2'),
  size: described(z.int(), 'In bytes.', 5),
  sha256: described(z.string(), 'Of its content.', '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'),
})

export function contentUploadRoutes({ contentUploads }: { contentUploads: Pick<ContentUploads, 'receive'> }): Route[] {
  return [
    {
      method: 'PUT',
      path: PATH,
      operation: describeOperation({
        method: 'PUT',
        path: PATH,
        access: 'public',
        needs: 'nothing',
        tag: 'Versions',
        summary: 'Send a file to an address that the MCP tool service_upload gave',
        takesBytes: true,
        status: 201,
        output: sentSchema,
      }),
      handle: async (request) =>
        json(201, await contentUploads.receive(paramsOf(PATH, request).token, request.stream())),
    },
  ]
}
