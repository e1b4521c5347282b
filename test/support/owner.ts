/** What an owner does with drops on a fleet, looked at on every edge as soon as it is acknowledged. */
import { setTimeout as sleep } from 'node:timers/promises'
import { seedDrops } from './faults.ts'
import type { Fleet } from './fleet.ts'
import type { Account, Published } from './stack.ts'
import { SEED } from './depth.ts'
import { createRandom } from './random.ts'

export interface Owner {
  textAt(slug: string): Promise<string>
  statusAt(slug: string): Promise<number>
  /** Both edges, whatever the balancer does. */
  statusesAt(slug: string): Promise<number[]>
  /** Calls that met the moment of a restore are refused; the owner asks again until one is acknowledged. */
  uploadSoon(site: Published, text: string): Promise<void>
  /** Returns what was not served as it was acknowledged. */
  randomOperations(count: number): Promise<string[]>
}

export function createOwner(fleet: Fleet, account: Account): Owner {
  const random = createRandom(SEED)
  const textAt = async (slug: string) => (await fleet.visit(slug)).text()
  const statusAt = async (slug: string) => (await fleet.visit(slug)).status
  const statusesAt = (slug: string) => Promise.all(Array.from({ length: 8 }, () => statusAt(slug)))

  async function upload(site: Published, text: string): Promise<{ status: number; pending: boolean }> {
    const body = new FormData()
    body.append('file', new File([`<title>x</title><p>${text}</p>`], 'index.html'))
    const answer = await fleet.fetch(`/api/v1/sites/${site.id}/upload`, { token: account.token, body })
    return { status: answer.status, pending: answer.header('dropway-propagation') === 'pending' }
  }

  async function uploadSoon(site: Published, text: string): Promise<void> {
    for (let attempt = 0; attempt < 60; attempt++) {
      const { status, pending } = await upload(site, text)
      if (status === 201 && !pending) return
      await sleep(500)
    }
    throw new Error('no upload is acknowledged any more')
  }

  async function randomOperations(count: number): Promise<string[]> {
    const wrong: string[] = []
    const sites = await seedDrops(fleet, account, 5)
    const lanes = sites.map(async (site, lane) => {
      for (let index = 0; index < count / sites.length; index++) {
        const what = await operate(site, `${lane} ${index}`)
        if (what !== undefined) wrong.push(what)
      }
    })
    await Promise.all(lanes)
    return wrong
  }

  async function operate(site: Published, marker: string): Promise<string | undefined> {
    if (random.chance(0.7)) {
      const { status, pending } = await upload(site, `operation ${marker}.`)
      if (status !== 201) return `upload ${marker}: ${status}`
      if (pending) return undefined
      const seen = await Promise.all([textAt(site.slug), textAt(site.slug)])
      return seen.every((text) => text.includes(`operation ${marker}.`)) ? undefined : `${marker} is not served`
    }
    const password = random.chance(0.5) ? null : `secret ${marker}`
    const answer = await fleet.fetch(`/api/v1/sites/${site.id}`, {
      method: 'PATCH',
      token: account.token,
      json: { password },
    })
    if (answer.status !== 200) return `password ${marker}: ${answer.status}`
    if (answer.header('dropway-propagation') === 'pending') return undefined
    const seen = await Promise.all([statusAt(site.slug), statusAt(site.slug)])
    const wanted = password === null ? 200 : 401
    const undone = await fleet.fetch(`/api/v1/sites/${site.id}`, {
      method: 'PATCH',
      token: account.token,
      json: { password: null },
    })
    if (undone.status !== 200) return `password ${marker}: ${undone.status}`
    return seen.every((status) => status === wanted) ? undefined : `${marker}: ${seen.join()} instead of ${wanted}`
  }

  return { textAt, statusAt, statusesAt, uploadSoon, randomOperations }
}
