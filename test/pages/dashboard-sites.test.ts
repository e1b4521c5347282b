import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, keepScreenshot, openVisitor, PASSWORD, type Visitor } from '../support/dashboard-visitor.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser
let account: Account
let visitor: Visitor

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
  account = await stack.createAccount('plus', { password: PASSWORD })
  visitor = await openVisitor(browser, stack)
  await beSignedIn(visitor, stack, account.email)
})
afterAll(() => browser.close())

const file = (name: string, text: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) })

/** The publish page waits for a click or for files; either way it ends on the drop's page. */
async function published(page: Page): Promise<string> {
  await page.waitForURL(/done=published/)
  return new URL(page.url()).pathname.split('/')[2]!
}

test('an empty list teaches what to do first', async () => {
  const { page } = visitor
  await visitor.goto('/sites')
  await page.getByRole('heading', { name: 'Your first drop takes ten seconds' }).waitFor()
  await page.getByRole('link', { name: 'Publish something' }).click()
  expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('New drop')
})

describe('a drop from start to end', () => {
  let id: string
  const slug = `dash-${Date.now().toString(36)}`

  test('several files become a drop at the address of choice', async () => {
    const { page } = visitor
    await visitor.goto('/sites/new')
    await page.getByLabel('Address').fill(slug)
    await page.getByLabel('Name').fill('Field notes')
    await page
      .locator('input[type=file]')
      .setInputFiles([
        file('index.html', '<title>One</title><h1>one</h1><a href="gone.html">dead</a>'),
        file('about.html', '<title>About</title>'),
      ])
    id = await published(page)
    await page.getByRole('heading', { name: 'Version 1 is live' }).waitFor()
    expect(await page.locator('.report').innerText()).toContain('gone.html')
    expect((await stack.visit(slug)).text()).toContain('<h1>one</h1>')
    expect((await stack.visit(slug, '/about')).status).toBe(200)
  })

  test('pasted Markdown is previewed while it is typed, then published with a message', async () => {
    const { page } = visitor
    await visitor.goto(`/sites/${id}`)
    await page
      .getByRole('textbox', { name: 'HTML or Markdown' })
      .fill('# Two\n\n<script>document.title="x"</script>| a |\n|---|\n| cell |')
    await page.frameLocator('[data-preview] iframe').getByRole('heading', { name: 'Two' }).waitFor()
    await page.getByLabel('Message').fill('a table')
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await page.getByRole('heading', { name: 'Version 2 is live' }).waitFor()
    expect((await stack.visit(slug)).text()).toContain('id="two"')
    expect(visitor.problems).toEqual([])
  })

  test('a refused upload says why; nothing was published', async () => {
    const { page } = visitor
    await visitor.goto(`/sites/${id}`)
    await page.locator('input[type=file]').setInputFiles([file('a.css', 'a{}'), file('b.js', '1')])
    expect(await page.getByRole('alert').innerText()).toContain('index.html')
    expect((await stack.visit(slug)).text()).toContain('id="two"')
  })

  test('an upload under way can be cancelled', async () => {
    const { page } = visitor
    await visitor.goto(`/sites/${id}`)
    // The request hangs until it is let go, as on a slow line.
    await page.route(
      (url) => url.pathname === `/sites/${id}/publish`,
      () => {},
    )
    await page.locator('input[type=file]').setInputFiles(file('index.html', 'slow'))
    await page.getByRole('button', { name: 'Cancel' }).click()
    expect(await page.getByRole('alert').innerText()).toContain('Nothing was published')
    await page.unrouteAll({ behavior: 'ignoreErrors' })
  })

  test('versions tell size, message and author; going back shows first what changes', async () => {
    const { page } = visitor
    await visitor.goto(`/sites/${id}/versions`)
    const row = page.getByRole('row', { name: /Version 2/ })
    expect(await row.innerText()).toMatch(/a table[\s\S]*1 file/)
    expect(await row.innerText()).toContain(account.email)
    await page.getByRole('link', { name: 'What changes with version 1' }).click()
    const changes = await page.locator('.changes').innerText()
    expect(changes).toContain('about.html')
    expect(changes).toContain('index.html')
    await page.getByRole('button', { name: 'Make live version 1' }).click()
    await page.getByText('Version 1 is live now.').waitFor()
    expect((await stack.visit(slug)).text()).toContain('<h1>one</h1>')
    await page.getByRole('button', { name: 'Undo: back to version 2' }).click()
    await page.getByText('Version 2 is live now.').waitFor()
    expect((await stack.visit(slug)).text()).toContain('id="two"')
  })

  test('settings: name and address, behaviour, password, analytics', async () => {
    const { page } = visitor
    const renamed = `${slug}-b`
    await visitor.goto(`/sites/${id}/settings`)
    await page.getByLabel('Address').fill(renamed)
    await page.getByRole('button', { name: 'Save General' }).click()
    await page.getByText('Saved.').waitFor()
    expect((await stack.visit(slug)).status).toBe(301)
    await page.getByLabel('Single-page app').check()
    await page.getByRole('button', { name: 'Save Behaviour' }).click()
    await page.getByText('Saved.').waitFor()
    expect((await stack.visit(renamed, '/anything')).status).toBe(200)
    await page.getByLabel('Google Analytics').fill('not an id')
    await page.getByRole('button', { name: 'Save Analytics' }).click()
    expect(await page.getByRole('alert').innerText()).toContain('G-XXXXXXXXXX')
    expect(await page.getByLabel('Google Analytics').inputValue()).toBe('not an id')
    await page.getByLabel('Google Analytics').fill('')
    await page.getByLabel('Plausible').fill('example.com')
    await page.getByRole('button', { name: 'Save Analytics' }).click()
    await page.getByText('Saved.').waitFor()
    expect((await stack.visit(renamed)).text()).toContain('dataset.domain="example.com"')
    await page.locator('input[name=password]').fill('open sesame')
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByText('Visitors need the password from now on.').waitFor()
    expect((await stack.visit(renamed)).status).toBe(401)
    await page.getByRole('button', { name: 'Remove password' }).click()
    await page.getByText('Everyone with the address can see the drop now.').waitFor()
    expect((await stack.visit(renamed)).status).toBe(200)
  })

  test('a custom domain shows the record to set and its state', async () => {
    const { page } = visitor
    await visitor.goto(`/sites/${id}/domains`)
    await page.getByRole('textbox', { name: 'Domain' }).fill('http://nonsense')
    await page.getByRole('button', { name: 'Add domain' }).click()
    expect(await page.getByRole('alert').innerText()).toContain('not a domain name')
    await page.getByRole('textbox', { name: 'Domain' }).fill(`www.${slug}.example.com`)
    await page.getByRole('button', { name: 'Add domain' }).click()
    await page.getByRole('heading', { name: `www.${slug}.example.com` }).waitFor()
    // The plan has room for one: instead of a form that is refused, the page says what makes room.
    await page.getByRole('heading', { name: 'No room for another domain' }).waitFor()
    expect(await page.getByText('CNAME').first().isVisible()).toBe(true)
    expect(await page.getByText('Waiting for DNS').first().isVisible()).toBe(true)
    // It is asked first, on a page of its own.
    await page.getByRole('link', { name: /^Remove/ }).click()
    await page.getByRole('link', { name: 'Keep it' }).click()
    await page.getByRole('heading', { name: `www.${slug}.example.com` }).waitFor()
    await page.getByRole('link', { name: /^Remove/ }).click()
    await page.getByRole('button', { name: 'Remove it' }).click()
    await page.getByText('Removed.').waitFor()
  })

  test('views are shown for 30 and for 90 days; where there are none, that is said', async () => {
    const { page } = visitor
    await visitor.goto(`/sites/${id}/views`)
    await page.getByText('Nobody has opened it in the last 30 days.').waitFor()
    await page.getByRole('link', { name: '90 days' }).click()
    await page.getByText('Nobody has opened it in the last 90 days.').waitFor()
  })

  test('the list finds it by name, and shows its state in words', async () => {
    const { page } = visitor
    await visitor.goto('/sites')
    await page.getByLabel('Search your drops').fill('field NOTES')
    await page.getByRole('button', { name: 'Search' }).click()
    const row = page.getByRole('row', { name: /Field notes/ })
    expect(await row.innerText()).toMatch(/Live/)
    await page.getByLabel('Search your drops').fill('no such thing')
    await page.getByRole('button', { name: 'Search' }).click()
    expect(await page.getByText('Nothing matches “no such thing”').isVisible()).toBe(true)
  })

  test('deleting needs the address typed; then it is gone', async () => {
    const { page } = visitor
    await visitor.goto(`/sites/${id}/settings`)
    const field = page.getByLabel(/^Type/)
    await field.fill(`${slug}-b`)
    await page.getByRole('button', { name: 'Delete for good' }).click()
    await page.getByText('Deleted.').waitFor()
    expect((await stack.visit(`${slug}-b`)).status).toBe(410)
  })
})

test('publishing, promoting and deleting work without JavaScript, on a phone', async () => {
  const plain = await openVisitor(browser, stack, { javaScript: false, width: 360, scheme: 'dark' })
  const { page } = plain
  await beSignedIn(plain, stack, account.email)
  await plain.goto('/sites/new')
  await page.locator('input[type=file]').setInputFiles(file('whatever.html', '<title>No script</title>plain'))
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  const id = await published(page)
  await page.getByRole('textbox', { name: 'HTML or Markdown' }).fill('# Typed')
  await page.getByRole('button', { name: 'Preview the text' }).click()
  await page.frameLocator('iframe[name=preview]').getByRole('heading', { name: 'Typed' }).waitFor()
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  await page.getByRole('heading', { name: 'Version 2 is live' }).waitFor()
  await keepScreenshot(page, 'site-no-script-360-dark')
  await plain.goto(`/sites/${id}/versions`)
  await page.getByRole('button', { name: 'Make live version 1' }).click()
  await page.getByText('Version 1 is live now.').waitFor()
  await plain.goto(`/sites/${id}/settings`)
  const slug = await page.getByLabel('Address').inputValue()
  await page.getByLabel(/^Type/).fill('something else')
  await page.getByRole('button', { name: 'Delete for good' }).click()
  // The browser itself holds a wrong confirmation back.
  expect((await stack.visit(slug)).text()).toContain('plain')
  await page.getByLabel(/^Type/).fill(slug)
  await page.getByRole('button', { name: 'Delete for good' }).click()
  await page.getByText('Deleted.').waitFor()
  await plain.close()
})

const HOSTILE = [
  '<img src=x onerror=alert(1)>',
  '"><script>alert(1)</script>',
  "' onmouseover='alert(1)",
  '${7*7} {{7*7}}',
  '\u202Egnp.exe',
  '</title><script>alert(1)</script>',
]

test('hostile names and titles are text, everywhere', async () => {
  const { page } = visitor
  const dialogs: string[] = []
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.message())
    void dialog.dismiss()
  })
  const site = await stack.publish(account, '<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;</title>x')
  for (const name of HOSTILE) {
    const patched = await stack.fetch(`/api/v1/sites/${site.id}`, {
      token: account.token,
      method: 'PATCH',
      json: { name },
    })
    expect(patched.status).toBe(200)
    for (const path of [
      '/sites',
      `/sites/${site.id}`,
      `/sites/${site.id}/settings`,
      `/sites?q=${encodeURIComponent(name)}`,
    ]) {
      await visitor.goto(path)
      expect(await page.locator('main').innerText()).toContain(name)
      expect(await page.locator('main script, main img').count()).toBe(0)
    }
  }
  expect(dialogs).toEqual([])
})
