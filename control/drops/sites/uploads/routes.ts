/** REST: /api/v1/sites/:id/uploads… Changed files only: list → send what is missing → finish. */
import { z } from 'zod'
import { MAX_FILE_LIST_BYTES } from '../../../../shared/contracts/limits.ts'
import { parse, requireActor, type ApiRouteFactory, type Authenticate } from '../../../ground/http/api.ts'
import { described } from '../../../ground/http/operations/described.ts'
import { describeOperation } from '../../../ground/http/operations/operation.ts'
import { paramsOf, type PathParams, type Route } from '../../../ground/http/route.ts'
import { reply } from '../propagation.ts'
import * as schemas from '../schemas.ts'
import type { UploadPlace, Uploads } from './uploads.ts'

const sites = '/api/v1/sites'
const root = `${sites}/:id/uploads` as const
const uploadPath = `${root}/:upload_id` as const
const blobPath = `${uploadPath}/blobs/:sha256` as const
const tag = 'Versions'

const offsetHeader = described(
  z.coerce.number<number>('upload-offset must be a number').int().nonnegative(),
  'How many bytes of the file have arrived before.',
)

const arrivedSpec = {
  method: 'GET',
  path: blobPath,
  access: 'verified',
  needs: 'read',
  isOfPreview: true,
  tag,
  summary: 'How much of a file has arrived',
  status: 200,
  answerHeaders: z.object({ 'upload-offset': offsetHeader }),
} as const

const sendSpec = {
  method: 'PUT',
  path: blobPath,
  access: 'verified',
  needs: 'publish',
  isOfPreview: true,
  tag,
  summary: 'Send a file, or the rest of it',
  headers: z.object({ 'upload-offset': offsetHeader.default(0) }),
  takesBytes: true,
  status: 204,
} as const

interface UploadRoutesDependencies {
  apiRoute: ApiRouteFactory
  authenticate: Authenticate
  uploads: Uploads
}

export function uploadRoutes({ apiRoute, authenticate, uploads }: UploadRoutesDependencies): Route[] {
  /** From its head on, before its caller is known. */
  const bringing = (route: Route): Route => ({
    ...route,
    handle: (request) =>
      uploads.bringing(request.params['upload_id'] ?? '', request.params['sha256'], async () => route.handle(request)),
  })
  return [
    apiRoute({
      method: 'POST',
      path: `${sites}/check`,
      access: 'verified',
      needs: 'read',
      tag,
      summary: 'What an upload would change, and whether it would be refused; changes nothing',
      status: 200,
      body: schemas.checkUploadSchema,
      maxBodyBytes: MAX_FILE_LIST_BYTES,
      output: schemas.uploadCheckSchema,
      run: ({ actor, body }) => uploads.check(actor, body),
    }),
    apiRoute({
      method: 'POST',
      path: root,
      access: 'verified',
      needs: 'publish',
      isOfPreview: true,
      tag,
      summary: 'Start an upload of changed files only',
      status: 201,
      body: schemas.startUploadSchema,
      maxBodyBytes: MAX_FILE_LIST_BYTES,
      output: schemas.uploadSchema,
      run: ({ actor, params, body }) => uploads.start(actor, params.id, body),
    }),
    apiRoute({
      method: 'GET',
      path: uploadPath,
      access: 'verified',
      needs: 'read',
      isOfPreview: true,
      tag,
      summary: 'What is still missing, and how much of it has arrived',
      status: 200,
      output: schemas.uploadProgressSchema,
      run: ({ actor, params }) => uploads.progress(actor, placeOf(params)),
    }),
    bringing(
      apiRoute({
        method: 'POST',
        path: `${uploadPath}/blobs`,
        access: 'verified',
        needs: 'publish',
        isOfPreview: true,
        tag,
        summary: 'Send several small files: parts of a form, each named by its sha256',
        status: 200,
        form: z.object({}).catchall(z.file()),
        formSamples: { files: { [schemas.SAMPLE_SHA256]: 'index.html' } },
        output: schemas.storedBlobsSchema,
        run: async ({ actor, request, params }) => ({
          stored: await uploads.receiveSeveral(actor, placeOf(params), (take) =>
            request.multipart(async (part) => {
              if (part.kind === 'file') await take(part.name, part.stream)
            }),
          ),
        }),
      }),
    ),
    {
      method: arrivedSpec.method,
      path: blobPath,
      operation: describeOperation(arrivedSpec),
      async handle(request) {
        const actor = await requireActor(authenticate, request, arrivedSpec)
        const params = paramsOf(blobPath, request)
        const offset = await uploads.offset(actor, placeOf(params), params.sha256)
        return { status: 200, headers: { 'upload-offset': String(offset), 'cache-control': 'no-store' } }
      },
    },
    bringing({
      method: sendSpec.method,
      path: blobPath,
      operation: describeOperation(sendSpec),
      async handle(request) {
        const actor = await requireActor(authenticate, request, sendSpec)
        const offset = parse(offsetHeader, request.header('upload-offset') ?? '0')
        const params = paramsOf(blobPath, request)
        const file = { hash: params.sha256, offset, body: request.stream() }
        await uploads.receive(actor, placeOf(params), file)
        return { status: 204 }
      },
    }),
    apiRoute({
      method: 'POST',
      path: `${uploadPath}/finish`,
      access: 'verified',
      needs: 'publish',
      isOfPreview: true,
      tag,
      summary: 'Publish what was sent',
      status: 201,
      output: schemas.versionSchema,
      run: async ({ actor, params }) => reply(await uploads.finish(actor, placeOf(params))),
    }),
  ]
}

function placeOf({ id, upload_id }: PathParams<typeof uploadPath>): UploadPlace {
  return { siteId: id, uploadId: upload_id }
}
