import { expect, test } from 'vitest'
import { GUIDES, sourceOf } from '../../../control/doors/dashboard/public/docs/guide-texts.ts'
import { renderText, summarize } from '../../../control/doors/dashboard/public/markdown-text.ts'

const render = (source: string) => renderText(source, { base_url: 'https://dropway.example' }, 'fallback')

test('the first heading is the title, the others are the contents, and facts are filled in', async () => {
  const text = await render(
    '---\ndescription: About  it.\n---\n\n# A `title` & more\n\nAt {{base_url}}, {{unknown}}.\n\n## First *part*\n\n## Second',
  )
  expect(text.title).toBe('A title & more')
  expect(text.description).toBe('About  it.')
  expect(text.contents).toEqual([
    { id: 'first-part', text: 'First part' },
    { id: 'second', text: 'Second' },
  ])
  expect(text.body.text).not.toContain('<h1')
  expect(text.body.text).toContain('https://dropway.example</a>, {{unknown}}.')
})

test('without settings and heading', async () => {
  expect(await render('Only words')).toMatchObject({ title: 'fallback', description: undefined, contents: [] })
})

test('cells of a table know their heading, and code can be scrolled by keyboard', async () => {
  const { body } = await render('| a "b" | c |\n|---|--:|\n| 1 | `2` |\n| 3 | 4 |\n\nafter\n\n```sh\nls\n```')
  const { text } = body
  expect(text).toContain('<table class="table stacked">')
  expect(text.match(/data-label="a &quot;b&quot;"/g)).toHaveLength(2)
  expect(text.match(/data-label="c"/g)).toHaveLength(2)
  expect(text).toContain('<p>after</p>')
  expect(text).toContain('<pre tabindex="0">')
})

test.each(GUIDES)('lists call the guide %s what its page calls itself', async (name) => {
  const { title, description } = await renderText(sourceOf(name), {}, 'fallback')
  expect(summarize(sourceOf(name), {}, 'fallback')).toEqual({ title, description })
  expect(title).not.toBe('fallback')
})
