/** How long a silent name server is waited for, whatever the library thinks of it. */
import { expect, test, vi } from 'vitest'
import { askDns } from '../../../shared/http/dns-question.ts'

function failing(code: string): Error {
  return Object.assign(new Error(`queryTxt ${code} example.com`), { code })
}

test('one that is silent is asked again until it has had the whole time', async ({ onTestFinished }) => {
  let now = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => clock.mockRestore())
  let asked = 0
  const silent = askDns(() => {
    asked += 1
    // What c-ares waits for a server that has answered in a few milliseconds before.
    now += 250
    return Promise.reject(failing('ETIMEOUT'))
  })
  await expect(silent).rejects.toThrow('ETIMEOUT')
  expect([asked, now]).toEqual([16, 4000])
})

test('what it says is taken at once, also after some silence', async () => {
  for (const code of ['ENOTFOUND', 'ENODATA', 'ESERVFAIL', 'ECONNREFUSED']) {
    const query = vi.fn<() => Promise<never>>(() => Promise.reject(failing(code)))
    await expect(askDns(query)).rejects.toThrow(code)
    expect(query).toHaveBeenCalledTimes(1)
  }
  const late = vi.fn<() => Promise<string[]>>(async () => ['shown'])
  late.mockRejectedValueOnce(failing('ETIMEOUT'))
  expect(await askDns(late)).toEqual(['shown'])
})
