/** People point at a page, an assistant mends it, and every open tab shows it: the review page in a browser. */
import type { Browser, FrameLocator, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seriousViolations } from '../support/accessibility.ts'
import { apiFor, fileForm } from '../support/api.ts'
import { launchBrowser } from '../support/browser.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let owner: Account
let browser: Browser
let nextSlug = 0

beforeAll(async () => {
  stack = await sharedStack()
  owner = await stack.createAccount('business')
  browser = await launchBrowser()
})
afterAll(() => browser.close())

const OPENING = 'Open on every day but Monday.'
const PAGE = (price: string) =>
  `<!doctype html><html lang="en"><title>Tickets</title><link rel="stylesheet" href="/style.css"><h1>Tickets</h1>
  <p>${OPENING}</p><p id="price">A ticket costs ${price} a person.</p><p>Children come in free.</p>`

/** So long that a reader has scrolled. */
const LONG = '<div style="height:3000px"></div>'

interface Drop {
  readonly id: string
  readonly slug: string
  readonly link: string
}

async function newDrop(html: string, fields: Record<string, string> = {}): Promise<Drop> {
  const slug = `review-${process.pid}-${nextSlug++}`
  const api = apiFor(stack, owner)
  const { id } = (await api.create({ slug })).json<{ id: string }>()
  const answer = await api.upload(id, fileForm('page.html', html, fields))
  expect(answer.status, answer.text()).toBe(201)
  const link = await stack.fetch(`/api/v1/sites/${id}/guest-links`, { token: owner.token, json: { role: 'comment' } })
  return { id, slug, link: link.json<{ url: string }>().url }
}

async function newPerson(options: { javaScriptEnabled?: boolean } = {}): Promise<Page> {
  const context = await browser.newContext({
    ignoreHTTPSErrors: true,
    viewport: { width: 1280, height: 800 },
    ...options,
  })
  return context.newPage()
}

/** Opens a link that lets its holder comment, and says who they are. */
async function comeIn(page: Page, drop: Drop, name: string): Promise<FrameLocator> {
  await page.goto(drop.link)
  await page.getByLabel('Your name').fill(name)
  await page.getByRole('button', { name: 'Go to the page' }).click()
  await page.waitForURL(`**/review/${drop.slug}`)
  return page.frameLocator('.review-frame')
}

const pointButton = (page: Page) => page.getByRole('button', { name: 'Point at something' })

/** The framed page listens: what points at it is shown from then on. */
const untilListening = (page: Page) => pointButton(page).waitFor()

/** Presses on something in the framed page, once that has heard that it is pointed at. */
async function pointAt(page: Page, target: Locator, position?: { x: number; y: number }): Promise<void> {
  await pointButton(page).click()
  const root = page.frameLocator('.review-frame').locator('html')
  await expect.poll(() => root.evaluate((html: HTMLElement) => html.style.cursor)).toBe('crosshair')
  await target.click(position && { position })
}

const select = (frame: FrameLocator) =>
  frame.locator('#price').evaluate((paragraph) => {
    const text = paragraph.firstChild as Text
    const range = document.createRange()
    const start = text.data.indexOf('from')
    range.setStart(text, start)
    range.setEnd(text, start + 'from 10 euros'.length)
    document.getSelection()!.removeAllRanges()
    document.getSelection()!.addRange(range)
    document.dispatchEvent(new MouseEvent('mouseup', { bubbles: true }))
  })

test('two people and an assistant: pointed at, mended, seen at once', async () => {
  const drop = await newDrop(PAGE('from 10 euros') + LONG, { access_mode: 'viewers' })
  const [ada, bob] = [await newPerson(), await newPerson()]
  const frame = await comeIn(ada, drop, 'Ada')
  await frame.getByRole('heading', { name: 'Tickets' }).waitFor()
  const besides = await comeIn(bob, drop, 'Bob')
  await Promise.all([untilListening(ada), untilListening(bob)])
  await select(frame)
  await expect.poll(() => ada.locator('[data-quoted]').textContent()).toBe('from 10 euros')
  await ada.getByLabel('What should be different?').fill('This price is **old**. <b>Really</b>')
  await ada.getByRole('button', { name: 'Comment' }).click()
  const thread = ada.locator('.thread')
  await thread.getByText('This price is').waitFor()
  expect(await thread.locator('.said').innerHTML()).toContain('<strong>old</strong>. &lt;b&gt;')
  expect(await seriousViolations(ada)).toEqual([])

  // Bob is in the middle of a sentence, and of the page.
  await bob.getByLabel('What should be different?').fill('And the children')
  const place = besides.locator('html')
  await bob.evaluate(() =>
    addEventListener('message', ({ data }) => void (data?.y === 700 && (document.title = 'scrolled'))),
  )
  await place.evaluate(() => scrollTo(0, 700))
  await expect.poll(() => bob.title()).toBe('scrolled')

  const client = await connectWithToken(stack, owner.token, 'modern')
  const listed = await client.callTool({ name: 'service_threads', arguments: { id: drop.slug } })
  const { threads } = listed.structuredContent as { threads: { thread: string; quote: string }[] }
  expect(threads).toMatchObject([{ quote: 'from 10 euros' }])
  const published = await client.callTool({
    name: 'service_publish',
    arguments: {
      slug: drop.slug,
      content: PAGE('from 12 euros') + LONG,
      format: 'html',
      resolves: threads.map((each) => each.thread),
    },
  })
  expect(published.isError, JSON.stringify(published.content)).toBeFalsy()
  await client.close()
  for (const person of [ada, bob]) {
    await person.frameLocator('.review-frame').getByText('from 12 euros').waitFor()
    await expect.poll(() => person.locator('[data-number]').textContent()).toBe('2')
  }
  await expect.poll(() => place.evaluate(() => scrollY)).toBe(700)
  expect(await bob.getByLabel('What should be different?').inputValue()).toBe('And the children')
  await ada.getByRole('link', { name: 'Resolved' }).click()
  await ada.getByText('resolved in version 2').waitFor()
})

/** One pixel, and what is no image. */
const GIF = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')
const fileOf = (buffer: Buffer) => ({ name: 'screen.gif', mimeType: 'image/gif', buffer })
const imageIn = (page: Page) => page.locator('.review-note input[type=file]')
const widthOf = (page: Page) =>
  page.locator('.thread .pictures img').evaluate((image: HTMLImageElement) => image.complete && image.naturalWidth)

test('without scripts a note with an image can be left, answered and resolved', async () => {
  const drop = await newDrop(PAGE('from 10 euros'))
  const page = await newPerson({ javaScriptEnabled: false })
  await comeIn(page, drop, 'Ada')
  await page.getByLabel('What should be different?').fill('Too short.')
  await imageIn(page).setInputFiles(fileOf(Buffer.from('no image')))
  await page.getByRole('button', { name: 'Comment' }).click()
  await page.getByText('Paste a PNG, JPEG, GIF or WebP image').waitFor()
  expect(await page.getByLabel('What should be different?').inputValue()).toBe('Too short.')
  await imageIn(page).setInputFiles(fileOf(GIF))
  await page.getByRole('button', { name: 'Comment' }).click()
  await page.getByText('Too short.').waitFor()
  await expect.poll(() => widthOf(page)).toBe(1)
  await page.getByLabel('Your answer').fill('Or is it?')
  await page.getByRole('button', { name: 'Answer' }).click()
  await page.getByText('Or is it?').waitFor()
  await page.getByRole('button', { name: 'Resolve' }).click()
  await page.getByText('Nothing here yet.').waitFor()
})

test('the keyboard alone points at a paragraph and comments on it', async () => {
  const drop = await newDrop(PAGE('from 10 euros'))
  const page = await newPerson()
  const frame = await comeIn(page, drop, 'Ada')
  await frame.getByRole('heading', { name: 'Tickets' }).waitFor()
  const quoted = page.locator('[data-quoted]')
  // Past the last one, and on with the first.
  for (const text of [
    'Tickets',
    OPENING,
    'A ticket costs from 10 euros a person.',
    'Children come in free.',
    'Tickets',
    OPENING,
  ]) {
    await page.getByRole('button', { name: 'Next paragraph' }).focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => quoted.textContent()).toBe(text)
  }
  await page.getByLabel('What should be different?').focus()
  await page.keyboard.type('Why not Monday?')
  // Past "Add an image" and the label, to the button.
  for (let stop = 0; stop < 3; stop++) await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.locator('.thread').getByText(OPENING).waitFor()
})

const HALL = `data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7`
const PICTURE = (words: string) =>
  `<!doctype html><html lang="en"><title>Hall</title><style>body{margin:20px}img{width:200px;height:100px}</style>
  <h1>Hall</h1><p>${words}</p><img alt="The hall" src="${HALL}"><p>Seats two hundred people.</p>`

/** The threads of a drop, as the API shows them. */
async function threadsOf(drop: Drop): Promise<{ anchor: Record<string, unknown>; placement: string }[]> {
  const answer = await stack.fetch(`/api/v1/sites/${drop.id}/threads`, { token: owner.token })
  return answer.json<{ threads: { anchor: Record<string, unknown>; placement: string }[] }>().threads
}

test('a point in an image and an element are pointed at, by mouse and by keyboard, and marked where they are', async () => {
  const drop = await newDrop(PICTURE('Built in 1901.'))
  const page = await newPerson()
  const frame = await comeIn(page, drop, 'Ada')
  await frame.getByRole('heading', { name: 'Hall' }).waitFor()
  const quoted = page.locator('[data-quoted]')
  await pointAt(page, frame.locator('img'), { x: 50, y: 75 })
  await expect.poll(() => quoted.textContent()).toBe('Image')
  expect(await page.getByLabel('Across').inputValue()).toBe('25')
  await page.getByLabel('What should be different?').fill('Brighter here.')
  await page.getByRole('button', { name: 'Comment' }).click()
  await page.locator('.thread').getByText('Brighter here.').waitFor()

  await page.getByRole('button', { name: 'Next image' }).focus()
  await page.keyboard.press('Enter')
  await expect.poll(() => page.getByLabel('Across').isVisible()).toBe(true)
  await page.getByLabel('Across').focus()
  await page.keyboard.press('ArrowRight')
  await page.getByLabel('What should be different?').fill('And here.')
  await page.getByRole('button', { name: 'Comment' }).click()
  await page.locator('.thread').getByText('And here.').waitFor()

  await pointAt(page, frame.getByText('Seats two hundred'))
  await expect.poll(() => quoted.textContent()).toBe('Seats two hundred people.')
  await page.getByLabel('What should be different?').fill('Three hundred.')
  await page.getByRole('button', { name: 'Comment' }).click()
  await page.locator('.thread').getByText('Three hundred.').waitFor()
  expect((await threadsOf(drop)).map(({ anchor }) => anchor)).toEqual([
    expect.objectContaining({
      exact: '',
      element: 'body > img',
      src: HALL,
      point: { x: expect.closeTo(0.25, 1), y: expect.closeTo(0.75, 1) },
    }),
    expect.objectContaining({ exact: '', point: { x: 0.51, y: 0.5 } }),
    expect.objectContaining({ exact: 'Seats two hundred people.', element: 'body > p:nth-of-type(2)' }),
  ])
  // A box for each of the three, and a pin for each point.
  await expect.poll(() => frame.locator('html > div > div').count()).toBe(5)
})

test('people see what changed and what was said since they last looked, and change what they wrote', async () => {
  const drop = await newDrop(PICTURE('Built in 1901.'))
  const page = await newPerson()
  const frame = await comeIn(page, drop, 'Ada')
  await frame.getByText('Built in 1901.').waitFor()
  await page.getByLabel('What should be different?').fill('Frist!')
  await page.getByRole('button', { name: 'Comment' }).click()
  await page.getByText('Frist!').waitFor()
  expect(await page.getByText('since you last looked').isVisible()).toBe(false)
  await page.goto('about:blank')
  await apiFor(stack, owner).upload(drop.id, fileForm('page.html', PICTURE('Built in 1902, of stone.')))
  await stack.fetch(`/api/v1/sites/${drop.id}/threads`, { token: owner.token, json: { page: '/', body: 'Mended.' } })
  await page.goto(drop.link)
  await page.getByText('One passage changed since you last looked.').waitFor()
  await page.getByRole('button', { name: 'Next change' }).click()
  await expect.poll(() => frame.locator('html > div > div').count()).toBe(1)
  expect(await page.locator('.message', { hasText: 'Mended.' }).locator('.message-new').count()).toBe(1)
  expect(await page.locator('.message', { hasText: 'Frist!' }).locator('.message-new').count()).toBe(0)

  const own = page.locator('.thread', { hasText: 'Frist!' })
  await own.getByText('Edit or delete').click()
  await page.getByLabel('What you wrote').fill('First.')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('First.').waitFor()
  await page.locator('.thread', { hasText: 'First.' }).getByLabel('How much it matters').selectOption('must')
  await page.locator('.thread .tag', { hasText: 'must' }).waitFor()
  expect(await seriousViolations(page)).toEqual([])
  await page.getByRole('link', { name: 'Nice to have' }).click()
  await page.getByText('Nothing of this kind.').waitFor()
  await page.getByRole('link', { name: 'Must', exact: true }).click()
  await page.getByText('First.').waitFor()
  expect(await page.getByText('Mended.').count()).toBe(0)
  await page.getByText('Edit or delete').click()
  await page.getByRole('button', { name: 'Delete for good' }).click()
  await page.getByText('Nothing of this kind.').waitFor()
})

test('an image is chosen instead of pasted; a stream that was refused is asked for again', async () => {
  const drop = await newDrop(PAGE('from 10 euros'))
  const page = await newPerson()
  let refused = 0
  await page.route('**/events*', (route) =>
    ++refused === 1 ? route.fulfill({ status: 429, body: 'Too many' }) : route.continue(),
  )
  await comeIn(page, drop, 'Ada')
  await page.getByLabel('What should be different?').fill('Like this.')
  await imageIn(page).setInputFiles(fileOf(Buffer.from('no image')))
  await page.getByText('Paste a PNG, JPEG, GIF or WebP image').waitFor()
  await imageIn(page).setInputFiles(fileOf(GIF))
  await page.locator('.review-note .pictures img').waitFor()
  await page.getByRole('button', { name: 'Comment' }).click()
  await page.locator('.thread').getByText('Like this.').waitFor()
  await expect.poll(() => widthOf(page)).toBe(1)
  expect((await apiFor(stack, owner).upload(drop.id, fileForm('page.html', PAGE('nothing')))).status).toBe(201)
  await page.frameLocator('.review-frame').getByText('costs nothing').waitFor()
  expect(refused).toBeGreaterThan(1)
})

test('what is written while the service is away is kept and sent later; a link opens at its thread', async () => {
  const drop = await newDrop(PICTURE('Built in 1901.'))
  const page = await newPerson()
  const frame = await comeIn(page, drop, 'Ada')
  await frame.getByText('Built in 1901.').waitFor()
  await page.route('**/notes*', (route) => route.abort())
  await page.getByLabel('What should be different?').fill('Written on a train.')
  await page.getByRole('button', { name: 'Comment' }).click()
  await page.getByText('kept in this browser').waitFor()
  expect(await threadsOf(drop)).toEqual([])
  await page.unroute('**/notes*')
  await page.reload()
  await page.locator('.thread').getByText('Written on a train.').waitFor()
  const [thread] = (await threadsOf(drop)) as unknown as { id: string; url: string }[]
  await page.goto(thread!.url)
  expect(await page.locator(`#${thread!.id}`).getAttribute('aria-current')).toBe('true')
})
