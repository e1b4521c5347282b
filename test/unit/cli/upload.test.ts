/** An upload whose end was not heard of goes on with what has arrived. */
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiClient } from '../../../cli/service/api-client.ts'
import { ApiFailure } from '../../../cli/service/api-failure.ts'
import { createUploader } from '../../../cli/service/upload.ts'

let configDir: string
beforeAll(async () => {
  configDir = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-upload-'))
})
afterAll(() => rm(configDir, { recursive: true, force: true }))

test.each([
  ['broke off', 504, ['POST /uploads', 'POST /finish', 'GET /upl_1', 'POST /finish', 'POST /uploads']],
  [
    'is over',
    404,
    ['POST /uploads', 'POST /finish', 'POST /uploads', 'POST /uploads', 'POST /finish', 'POST /uploads'],
  ],
])('a finish that %s', async (_, status, expected) => {
  const calls: string[] = []
  let isFailing = true
  const api = {
    async call(method: string, target: string) {
      calls.push(`${method} /${target.split('/').at(-1)}`)
      if (target.endsWith('/finish')) {
        if (isFailing) throw new ApiFailure(status, 'x', 'x')
        return { version_number: 1 }
      }
      return { upload_id: 'upl_1', missing: ['a'], unchanged: false, expires_at: '2999-01-01T00:00:00Z' }
    },
  } as unknown as ApiClient
  const uploader = createUploader({ api, configDir, siteId: `st_${status}`, files: [], options: {} })
  await expect(uploader.finish(await uploader.start())).rejects.toMatchObject({ status })
  isFailing = false
  await uploader.finish(await uploader.start())
  // What is over is not remembered.
  await uploader.start()
  expect(calls).toEqual(expected)
})
