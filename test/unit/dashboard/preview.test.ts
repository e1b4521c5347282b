import { expect, test } from 'vitest'
import type { Handlers } from '../../../control/doors/dashboard/frame/handlers.ts'
import { previewRoutes } from '../../../control/doors/dashboard/publish/preview-pages.ts'
import type { DashboardServices } from '../../../control/doors/dashboard/frame/services.ts'
import { createRateLimiter } from '../../../control/ground/http/limits/rate-limit.ts'
import type { Part, Request } from '../../../control/ground/http/route.ts'
import { HOUSE_LOOK } from '../../../shared/pages/look.ts'
import { errors } from '../../../shared/contracts/errors.ts'

const HANDLERS = {
  read: async () => ({ viewer: {} }),
  reply: (_: unknown, answer: unknown) => answer,
} as unknown as Handlers

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
  const services = {
    csrf,
    config: { baseUrl: 'https://dropway.example', look: HOUSE_LOOK, allowsAnonymous: true },
  } as unknown as DashboardServices
  const route = previewRoutes(services, HANDLERS).find(({ method }) => method === 'POST')!
  await expect(route.handle(request)).rejects.toMatchObject({ status: 403 })
  expect(taken).toBe(1)
})

test('one network has a limit, which leaves others theirs', async () => {
  // Redis is away, so that this process counts alone.
  const redis = { eval: () => Promise.reject(new Error('away')) } as never
  const services = {
    csrf: { requireCsrf() {} },
    limiter: createRateLimiter({ redis, clock: { now: () => 1_800_000_000_000 } }),
    config: { baseUrl: 'https://dropway.example', look: HOUSE_LOOK, allowsAnonymous: true },
  } as unknown as DashboardServices
  const route = previewRoutes(services, HANDLERS).find(({ method }) => method === 'POST')!
  const form = async () => new URLSearchParams({ text: '' })
  const preview = async (ip: string): Promise<unknown> =>
    route.handle({ ip, header: () => undefined, form } as unknown as Request)
  for (let count = 0; count < 900; count++) await preview(`2001:db8::${count % 7}`)
  await expect(preview('2001:db8::ff')).rejects.toMatchObject({
    status: 429,
    headers: { 'retry-after': expect.any(String) },
  })
  expect(await preview('2001:db8:0:1::1')).toMatchObject({ status: 200 })
})
