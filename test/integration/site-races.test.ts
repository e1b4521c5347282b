/** Changes of one drop, or of whose it is, that happen at the same time. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let control: ComposedServices
beforeAll(async () => {
  control = await composeServices()
})
afterAll(() => control.close())

describe('routes are written from what is true when they are written', () => {
  test('a password that is set while the organisation is transferred protects the drop', async () => {
    const { services, sql, overlap } = control
    const team = await control.newTeam(await control.newActor(), 'plus')
    const heir = await control.newActor()
    await sql`insert into memberships (org_id, user_id, role) values (${team.orgId}, ${heir.userId}, 'admin')`
    const { site } = await control.publishPage(team, 'secret')
    await overlap(
      async (db) => {
        await db`update sites set password_hash = 'phc' where id = ${site.id}`
        await services.refreshRoutes(db, site.id)
      },
      () => services.organisations.transfer(team, team.orgId, heir.userId),
    )
    expect((await control.routeOf(site.slug)).password).toMatchObject({ hash: 'phc' })
  })
})
