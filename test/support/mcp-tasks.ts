/**
 * Twelve tasks of an assistant that knows nothing but tools/list: each is the calls it makes and what must be true for
 * a visitor afterwards. A task may take two calls. Used by the acceptance test and by `npm run bench:mcp`.
 */
import { randomBytes } from 'node:crypto'
import { countTokens } from 'gpt-tokenizer'
import type { Client } from '@modelcontextprotocol/client'
import type { Stack } from './stack.ts'

export const MAX_CALLS = 2

export interface TaskResult {
  readonly task: string
  readonly calls: number
  /** What the model writes: names and arguments. */
  readonly callTokens: number
  /** What the model reads. */
  readonly answerTokens: number
  /** What is not as it should be; empty when the task is done. */
  readonly problems: readonly string[]
}

interface Result {
  readonly isError: boolean
  /** Texts of the answer, the facts parsed where they are JSON. */
  readonly texts: readonly string[]
  // oxlint-disable-next-line typescript/no-explicit-any -- each task asserts the shape
  readonly facts: any
}

interface Attempt {
  readonly stack: Stack
  call(tool: string, args: Record<string, unknown>): Promise<Result>
  /** Notes a problem unless `isRight`. */
  check(isRight: boolean, problem: string): void
  visit(slug: string, path?: string): Promise<{ status: number; text: string; length: number }>
  newSlug(): string
  /** Prepares a drop that the task begins with; not counted. */
  given(files: Record<string, string>, slug?: string): Promise<string>
}

interface Task {
  readonly name: string
  run(attempt: Attempt): Promise<void>
}

const SITE = {
  'index.html': '<!doctype html><title>Site</title><link rel="stylesheet" href="site.css"><h1>Site</h1>',
  'site.css': 'h1 { color: teal }',
  'about.html': '<!doctype html><title>About</title><h1>About</h1>',
  'app.js': 'console.log(1)',
}

const filesOf = (files: Record<string, string>) => Object.entries(files).map(([path, content]) => ({ path, content }))

export const TASKS: readonly Task[] = [
  {
    name: 'publish a page',
    async run({ call, check, visit, newSlug }) {
      const slug = newSlug()
      const { facts } = await call('service_publish', {
        content: '# Hello\n\nFrom an assistant.',
        slug,
        title: 'Hello',
      })
      check(facts.version === 1 && facts.created === true, 'not a new drop')
      check((await visit(slug)).text.includes('From an assistant.'), 'the page is not there')
    },
  },
  {
    name: 'publish a site',
    async run({ call, check, visit, newSlug }) {
      const slug = newSlug()
      await call('service_publish', { slug, files: filesOf(SITE) })
      check((await visit(slug, '/site.css')).text.includes('teal'), 'the style is not there')
      check((await visit(slug, '/about')).text.includes('About'), 'the second page is not there')
    },
  },
  {
    name: 'change one file',
    async run({ call, check, visit, given }) {
      const slug = await given(SITE)
      await call('service_edit_files', { id: slug, put: [{ path: 'site.css', content: 'h1 { color: plum }' }] })
      check((await visit(slug, '/site.css')).text.includes('plum'), 'the file has not changed')
      for (const path of ['/', '/about', '/app.js']) check((await visit(slug, path)).status === 200, `${path} is gone`)
    },
  },
  {
    name: 'protect',
    async run({ call, check, visit, given }) {
      const slug = await given(SITE)
      await call('service_settings', { id: slug, password: 'open sesame' })
      check((await visit(slug)).status === 401, 'everyone can read it')
    },
  },
  {
    name: 'share',
    async run({ call, check, visit, given }) {
      const slug = await given(SITE)
      await call('service_settings', { id: slug, password: 'open sesame' })
      const { facts } = await call('service_settings', { id: slug, password: '', confirm: true, gallery: true })
      check((await visit(slug)).status === 200, 'it is still locked')
      check(facts.gallery === true && facts.password === undefined, 'it is not in the gallery')
    },
  },
  {
    name: 'roll back',
    async run({ call, check, visit, given }) {
      const slug = await given(SITE)
      await given({ ...SITE, 'index.html': '<h1>Broken</h1>' }, slug)
      const { facts } = await call('service_read', { id: slug, versions: true })
      const before = facts.versions.find((version: { live?: boolean }) => !version.live)
      await call('service_promote', { id: slug, version: before.version })
      check((await visit(slug)).text.includes('<h1>Site</h1>'), 'the old version is not live')
    },
  },
  {
    name: 'resolve a conflict',
    async run({ call, check, visit, given }) {
      const slug = await given(SITE)
      await given({ ...SITE, 'about.html': '<h1>By someone else</h1>' }, slug)
      const put = [{ path: 'site.css', content: 'h1 { color: plum }' }]
      const refused = await call('service_edit_files', { id: slug, put, if_version: 1 })
      check(refused.isError && refused.texts[0]!.startsWith('version_changed: '), 'nothing was said about the conflict')
      const live = Number(/Version (\d+) is live/.exec(refused.texts[0]!)?.[1])
      await call('service_edit_files', { id: slug, put, if_version: live })
      check((await visit(slug, '/about')).text.includes('By someone else'), 'the work of the other is lost')
      check((await visit(slug, '/site.css')).text.includes('plum'), 'the own work is lost')
    },
  },
  {
    name: 'large video',
    async run({ stack, call, check, visit, given }) {
      const slug = await given(SITE)
      const { facts } = await call('service_upload', { name: 'film.mp4' })
      const video = randomBytes(40_000_000)
      const sent = await stack.fetch(facts.put_url, { method: 'PUT', body: video })
      check(sent.status === 201, `the address answered ${sent.status}`)
      await call('service_edit_files', { id: slug, put: [{ path: 'film.mp4', upload: facts.upload }] })
      check((await visit(slug, '/film.mp4')).length === video.length, 'the video is not there')
      check((await visit(slug)).status === 200, 'the site is gone')
    },
  },
  {
    name: 'read the report and mend',
    async run({ call, check, given }) {
      const slug = await given({ ...SITE, 'index.html': '<h1>Site</h1><img src="logo.svg">' })
      const { facts } = await call('service_read', { id: slug })
      check(JSON.stringify(facts.warnings).includes('logo.svg'), 'the report does not name the missing file')
      const logo = '<svg xmlns="http://www.w3.org/2000/svg"/>'
      const mended = await call('service_edit_files', { id: slug, put: [{ path: 'logo.svg', content: logo }] })
      check(mended.facts.warnings.length === 0, 'the report still complains')
    },
  },
  {
    name: 'custom domain',
    async run({ call, check, given, newSlug }) {
      const slug = await given(SITE)
      const domain = `www.${newSlug()}.example`
      const { facts } = await call('service_domain', { id: slug, action: 'add', domain })
      check(facts.records?.length > 0 && facts.says !== '', 'no word about the records to set')
      const checked = await call('service_domain', { id: slug, action: 'check', domain })
      check(checked.facts.state === 'awaiting_dns', `the state is ${checked.facts.state}`)
    },
  },
  {
    name: 'rename',
    async run({ call, check, visit, given, newSlug }) {
      const slug = await given(SITE)
      const renamed = newSlug()
      await call('service_settings', { id: slug, slug: renamed, title: 'New name' })
      check((await visit(renamed)).status === 200, 'the new address does not answer')
      check((await visit(slug)).status === 301, 'the old address does not redirect')
    },
  },
  {
    name: 'delete',
    async run({ call, check, visit, given }) {
      const slug = await given(SITE)
      await call('service_delete', { id: slug })
      check((await visit(slug)).status === 410, 'it is still there')
    },
  },
]

export async function runTask(stack: Stack, client: Client, task: Task): Promise<TaskResult> {
  const problems: string[] = []
  let calls = 0
  let callTokens = 0
  let answerTokens = 0
  const newSlug = (): string => `task-${randomBytes(5).toString('hex')}`

  async function send(name: string, args: Record<string, unknown>): Promise<Result> {
    const result = await client.callTool({ name, arguments: args })
    const texts = result.content.map((part) => (part as { text: string }).text)
    return { isError: result.isError === true, texts, facts: result.structuredContent }
  }

  await task.run({
    stack,
    newSlug,
    async call(name, args) {
      calls++
      callTokens += countTokens(JSON.stringify({ name, arguments: args }))
      const result = await send(name, args)
      answerTokens += countTokens(result.texts.join('\n'))
      return result
    },
    check(isRight, problem) {
      if (!isRight) problems.push(problem)
    },
    async visit(slug, path = '/') {
      const answer = await stack.visit(slug, path)
      return { status: answer.status, text: answer.text(), length: answer.body.length }
    },
    async given(files, slug = newSlug()) {
      const result = await send('service_publish', { slug, files: filesOf(files), replace: true })
      if (result.isError) throw new Error(`the drop of the task could not be made: ${result.texts[0]}`)
      return slug
    },
  })
  return { task: task.name, calls, callTokens, answerTokens, problems }
}
