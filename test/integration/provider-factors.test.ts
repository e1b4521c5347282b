/** People of the provider who have lost their second factor. */
import { expect, test } from 'vitest'
import { BASE_URL, manySided, openBrowser, useProvider, type ProvidedInstance } from '../support/provider-instance.ts'

const { shared, startProvider, openInstance } = useProvider()

const addGenerator = ({ sql }: ProvidedInstance, userId: string) => sql`
  insert into code_generators (user_id, sealed_secret, created_at, confirmed_at)
  values (${userId}, 'x', '2026-01-01', '2026-01-01')`

/** The page that asks for the second factor. */
const provePage = async (browser: ReturnType<typeof openBrowser>, { url }: ProvidedInstance): Promise<string> =>
  (await (await browser.get(`${url}/account/prove`)).text()).replaceAll(/\s+/g, ' ')

test('they say so where it is asked for; a day later the provider lets them in without it', async () => {
  const provider = await startProvider()
  const instance = await openInstance(provider, { PASSWORD_SIGN_IN: 'off' })
  const { sql } = instance
  const world = await manySided({ provider, instance })
  await addGenerator(instance, world.userId)
  const hasGenerator = async () =>
    (await sql`select 1 from code_generators where user_id = ${world.userId}`).length === 1
  const browser = await world.comeByProvider()
  const page = await provePage(browser, instance)
  expect(page).toContain('sign in with Acme again')
  expect(page).not.toContain('password')
  const begun = await browser.get(`${instance.url}/account/prove/lost`, {
    method: 'POST',
    body: new URLSearchParams({ csrf: /name="csrf" value="([^"]+)"/.exec(page)![1]! }),
    headers: { origin: BASE_URL },
  })
  const text = (await begun.text()).replaceAll(/\s+/g, ' ')
  expect([begun.status, text.includes('sign in with Acme alone'), text.includes('password')]).toEqual([
    200,
    true,
    false,
  ])
  const [mail] = (await instance.mailsTo(world.ada.email)).filter(({ template }) => template === 'factor_recovery')
  expect(mail?.text).toContain('Someone who is signed in')
  expect(mail?.text).not.toContain('password')
  const ways = (await (await browser.get(`${instance.url}/account/ways-in`)).text()).replaceAll(/\s+/g, ' ')
  expect(ways).toContain('signing in with Acme takes it away')

  await world.comeByProvider()
  expect(await hasGenerator()).toBe(true)
  await sql`update factor_recoveries set due_at = '2000-01-01'`
  await world.comeByProvider()
  expect(await hasGenerator()).toBe(false)
  const entries = await sql`select detail from audit_log
    where action = 'account.second_factor_removed' and subject = ${world.userId}`
  expect([...entries]).toEqual([{ detail: { by: 'recovery' } }])
})

test('the words name the ways in that a person has', async () => {
  const { instance } = shared
  const world = await manySided(shared)
  const { setCookie } = await world.withPassword()
  const browser = openBrowser(instance)
  browser.jar.set('__Host-dropway_session', /=([^;]*)/.exec(setCookie)![1]!)
  await addGenerator(instance, world.userId)
  // Who has a password alone says it where signing in asks for a code.
  expect(await provePage(browser, instance)).not.toContain('/account/prove/lost')
  await world.comeByProvider()
  expect(await provePage(browser, instance)).toContain('sign in with your password or with Acme again')
})
