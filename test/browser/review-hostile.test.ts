/** A page that is framed by the review page and wants more: it reads, writes and moves nothing, and freezes nothing. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { launchBrowser } from '../support/browser.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let owner: Account
let browser: Browser

beforeAll(async () => {
  stack = await sharedStack()
  owner = await stack.createAccount('business')
  browser = await launchBrowser()
})
afterAll(() => browser.close())

const SECRET = 'a comment that the page must not read'

/** Each in its own try: what one of them breaks does not save the others. `S` is the service, `I` the id of the drop. */
const TRICKS = [
  // Messages: forged, malformed, huge, many.
  'parent.postMessage({dropway:1,kind:"selected",quote:{exact:"<img src=x onerror=alert(1)>",prefix:"",suffix:""}},"*")',
  'parent.postMessage({dropway:1,kind:"selected",quote:{exact:"x".repeat(3e6),prefix:"y".repeat(1e6),suffix:""}},"*")',
  'parent.postMessage({dropway:1,kind:"ready",path:"javascript:alert(1)"},"*")',
  'parent.postMessage({dropway:1,kind:"ready",path:"//evil.example"},"*")',
  'parent.postMessage({dropway:1,kind:"submit",body:"forged"},"*")',
  'parent.postMessage({dropway:1,kind:"__proto__",quote:null},"*")',
  'parent.postMessage({dropway:1,kind:"selected",quote:{exact:{toString(){return "x"}}}},"*")',
  'parent.postMessage("dropway","*");parent.postMessage(null,"*")',
  'for(let i=0;i<20000;i++)parent.postMessage({dropway:1,kind:"scrolled",y:i},"*")',
  'setInterval(()=>{for(let i=0;i<200;i++)parent.postMessage({dropway:1,kind:"selected",quote:{exact:"e"+i,prefix:"",suffix:""}},"*")},50)',
  'addEventListener("message",e=>{window.heard=(window.heard||"")+JSON.stringify(e.data)})',
  // The window of the review page.
  'window.top.location="https://evil.example/"',
  'window.top.location.href="/evil"',
  'parent.document.body.innerHTML=""',
  'window.stolen=parent.document.body.innerText',
  'parent.eval("1")',
  'top.close()',
  'window.stolen=parent.localStorage.getItem("x")',
  'window.open("https://evil.example/","_top")',
  'window.open(S+"/signout","_parent")',
  'document.body.insertAdjacentHTML("beforeend","<a id=t target=_top href=/evil>x</a>");document.getElementById("t").click()',
  'document.body.insertAdjacentHTML("beforeend","<form id=f target=_top method=post action="+S+"/review/"+L+"/notes><input name=body value=forged></form>");document.getElementById("f").submit()',
  'history.pushState({},"","/a");history.back();history.go(-5)',
  // The API, with the cookies of the person.
  'fetch(S+"/api/v1/sites/"+I+"/threads",{credentials:"include"}).then(r=>r.text()).then(t=>window.stolen=t)',
  'fetch(S+"/api/v1/sites/"+I+"/threads",{method:"POST",mode:"no-cors",credentials:"include",headers:{"content-type":"text/plain"},body:JSON.stringify({page:"/",body:"forged"})})',
  'fetch(S+"/review/"+L+"/notes",{method:"POST",mode:"no-cors",credentials:"include",body:new URLSearchParams({page:"/",body:"forged"})})',
  'fetch(S+"/review/"+L+"/here",{method:"POST",credentials:"include"}).then(r=>r.text()).then(t=>window.stolen=t)',
  'new EventSource(S+"/review/"+L+"/events",{withCredentials:true}).onmessage=e=>window.stolen=e.data',
  'document.body.insertAdjacentHTML("beforeend","<iframe src="+S+"/review/"+L+"></iframe>")',
  // What covers, asks, stays.
  'document.body.insertAdjacentHTML("beforeend","<div style=\\"position:fixed;inset:0;z-index:2147483647;background:red\\">covered</div>")',
  'alert(1);confirm(1);prompt(1)',
  'navigator.serviceWorker.register("/sw.js")',
  'onbeforeunload=()=>"stay";document.documentElement.requestFullscreen()',
  'Notification.requestPermission();navigator.geolocation.getCurrentPosition(()=>{})',
]

test('thirty-four tricks of a framed page: nothing is read, written, moved or frozen', async () => {
  const slug = `hostile-${process.pid}`
  const api = apiFor(stack, owner)
  const { id } = (await api.create({ slug })).json<{ id: string }>()
  const constants = `const S=${JSON.stringify(stack.baseUrl)},I=${JSON.stringify(id)},L=${JSON.stringify(slug)};`
  const script = TRICKS.map((trick) => `try{${trick}}catch(e){}`).join('\n')
  const html = `<!doctype html><title>Hostile</title><h1>Hostile</h1><p>Text to point at.</p><script>${constants}onload=()=>{${script}}</script>`
  expect((await api.upload(id, fileForm('page.html', html))).status).toBe(201)
  const path = `/api/v1/sites/${id}`
  await stack.fetch(`${path}/threads`, { token: owner.token, json: { page: '/', body: SECRET } })
  const link = await stack.fetch(`${path}/guest-links`, { token: owner.token, json: { role: 'comment' } })

  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  const page = await context.newPage()
  let asked = 0
  page.on('dialog', (dialog) => void (asked++, dialog.dismiss()))
  await page.goto(link.json<{ url: string }>().url)
  await page.getByLabel('Your name').fill('Ada Secretname')
  await page.getByRole('button', { name: 'Go to the page' }).click()
  await page.getByText(SECRET).waitFor()
  const framed = () => page.frames().find((each) => each.url().includes(slug) && each !== page.mainFrame())
  await expect.poll(framed).toBeDefined()
  const frame = framed()!
  await frame.waitForFunction(() => 'heard' in window, undefined, { polling: 200 })
  // The page is there and answers while the frame does its worst.
  await page.getByLabel('What should be different?').fill('Written in spite of it.')
  await page.getByRole('button', { name: 'Comment' }).click()
  await page.locator('.thread').getByText('Written in spite of it.').waitFor()
  expect(new URL(page.url()).pathname).toBe(`/review/${slug}`)
  expect(context.pages()).toHaveLength(1)
  expect(asked).toBe(0)
  expect(await page.locator('.review-side img').count()).toBe(0)

  const seen = await frame.evaluate(() => {
    const { heard, stolen } = window as { heard?: string; stolen?: string }
    return JSON.stringify([heard, stolen])
  })
  expect(seen).toContain('kind')
  for (const secret of [SECRET, 'Ada Secretname', 'Written in spite']) expect(seen).not.toContain(secret)
  const all = await stack.fetch(`${path}/threads?state=all`, { token: owner.token })
  const { threads } = all.json<{ threads: { messages: { body: string }[] }[] }>()
  expect(threads.flatMap(({ messages }) => messages.map(({ body }) => body))).toEqual([
    SECRET,
    'Written in spite of it.',
  ])
  await context.close()
})
