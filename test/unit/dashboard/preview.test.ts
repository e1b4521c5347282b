import { expect, test } from 'vitest'
import type { Handlers } from '../../../control/doors/dashboard/frame/handlers.ts'
import { previewRoutes } from '../../../control/doors/dashboard/publish/preview-pages.ts'
import type { DashboardServices } from '../../../control/doors/dashboard/frame/services.ts'
import type { Part, Request } from '../../../control/ground/http/route.ts'
import { errors } from '../../../shared/errors.ts'

test('a form without our token is refused at its first part', async () => {
  let taken = 0
  const request = {
    header: () => 'multipart/form-data; boundary=b',
    async multipart(onPart: (part: Part) => Promise<void>) {
      for (let index = 0; index < 100; index++) {
        taken++
        await onPart({ kind: 'field', name: 'text', value: 'x' })
      }
    },
  } as unknown as Request
  const csrf = {
    requireCsrf(_: Request, form: URLSearchParams) {
      if (!form.has('csrf')) throw errors.forbidden('no token')
    },
  }
  const services = { csrf, config: { baseUrl: 'https://dropway.example' } } as unknown as DashboardServices
  const route = previewRoutes(services, {} as Handlers).find(({ method }) => method === 'POST')!
  await expect(async () => route.handle(request)).rejects.toMatchObject({ status: 403 })
  expect(taken).toBe(1)
})
