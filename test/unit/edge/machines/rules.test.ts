import { describe, expect, test } from 'vitest'
import type { Intent } from '../../../../edge/context.ts'
import { llmsTxt } from '../../../../edge/processes/machines/llms-txt.ts'
import {
  isGenerated,
  markdownBeside,
  robotsTxt,
  shownPath,
  signalOf,
} from '../../../../edge/processes/machines/rules.ts'
import { prefersMarkdown } from '../../../../edge/rewrite/negotiate.ts'
import { fileOf } from '../../../support/manifests.ts'

describe('who gets Markdown', () => {
  test.each<[string | undefined, boolean]>([
    [undefined, false],
    ['', false],
    ['*/*', false],
    ['text/*', false],
    ['text/html', false],
    ['text/markdown', true],
    ['Text/Markdown', true],
    ['text/markdown, text/html', true],
    ['text/html, text/markdown', true],
    ['text/markdown, */*', true],
    ['text/markdown;q=0.9, */*;q=0.9', true],
    ['text/markdown;q=0.8, */*', false],
    ['text/markdown;q=0.8, text/*;q=0.9, */*;q=0.1', false],
    ['text/markdown;q=0.5, text/html;q=0.4, */*', true],
    ['text/html;q=0.9, text/markdown;q=0.8', false],
    ['text/markdown;q=0', false],
    ['text/markdown;q=nonsense', false],
    ['text/markdown;variant=GFM;q=0.7, text/html;q=0.7', true],
    ['text/x-markdown', false],
    [`text/markdown, ${'a/b,'.repeat(1000)}`, false],
    [`text/markdown,${'a'.repeat(486)}`, true],
    [`text/markdown,${'a'.repeat(487)}`, false],
    ['text/x-markdown, */*;q=0', false],
    ['text/html;q=0.9, text/markdown; q = 0.8', false],
    // Only what is called q is a weight.
    ['text/markdown;faq=0', true],
    ['text/markdown;qq=0', true],
    ['text/markdown;q=0;q=1', false],
    ['text/markdown;q=0.5, text/html;level=1', false],
  ])('%s → %s', (accept, isMarkdown) => {
    expect(prefersMarkdown(accept)).toBe(isMarkdown)
  })
})

describe("Markdown of the publisher's own", () => {
  const files = new Map([
    ['about.md', { ...fileOf('about.md'), type: 'text/markdown; charset=utf-8', hash: '1'.repeat(64) }],
    ['docs/index.md', { ...fileOf('index.md'), type: 'text/markdown; charset=utf-8', hash: '2'.repeat(64) }],
  ])
  const source = { path: 'post.md', hash: '3'.repeat(64), size: 5 }
  test.each<[string, string, ReturnType<typeof fileOf>, string | undefined]>([
    ['beside the page', 'about.html', fileOf('about.html'), '1'],
    ['of a folder', 'docs/index.html', fileOf('index.html'), '2'],
    ['what it was made of', 'post.html', { ...fileOf('post.html'), source }, '3'],
    ['a file beside it wins over what it was made of', 'about.html', { ...fileOf('about.html'), source }, '1'],
    [
      'a source in another encoding is no Markdown',
      'a.html',
      { ...fileOf('a.html'), source: { ...source, path: 'a.html' } },
      undefined,
    ],
    ['none', 'other.html', fileOf('other.html'), undefined],
  ])('%s', (_what, path, file, first) => {
    expect(markdownBeside({ path, file }, { files })?.hash[0]).toBe(first)
  })
})

test.each([
  ['index.html', '/'],
  ['about.html', '/about'],
  ['docs/index.html', '/docs/'],
  ['docs/index.htm', '/docs/'],
  ['docs/a.htm', '/docs/a.htm'],
])('%s is shown at %s', (path, shown) => {
  expect(shownPath(path)).toBe(shown)
})

test('robots.txt says what the owner does not want, and nothing otherwise', () => {
  expect([signalOf(undefined), signalOf('no-training'), signalOf('none')]).toEqual([
    undefined,
    'ai-train=no',
    'ai-train=no, ai-input=no',
  ])
  expect(robotsTxt(undefined)).toBeUndefined()
  expect(robotsTxt('none')).toBe('User-agent: *\nContent-Signal: ai-train=no, ai-input=no\nAllow: /\n')
})

describe('where something is made for machines', () => {
  const asset = (path: string, status: 200 | 404): Intent => ({
    kind: 'asset',
    path,
    status,
    file: { ...fileOf(path), injection: { head: 0, body: 0 } },
    custom: { id: '', list: [] },
  })
  test.each<[string, string, Intent, boolean, boolean]>([
    ['nothing there', '/llms.txt', { kind: 'missing' }, false, true],
    ['a 404 page of its own', '/llms.txt', asset('404.html', 404), false, true],
    ['a single page that answers to everything', '/robots.txt', asset('index.html', 200), true, true],
    ['a file of its own', '/llms.txt', asset('llms.txt', 200), true, false],
    ['a rule that leads to a page', '/llms.txt', asset('index.html', 200), false, false],
    ['a redirect', '/robots.txt', { kind: 'redirect', status: 301, location: '/x' }, false, false],
    ['another path', '/llms', { kind: 'missing' }, false, false],
    ['in a folder', '/docs/llms.txt', { kind: 'missing' }, false, false],
  ])('%s', (_what, target, intent, spaFallback, isMade) => {
    expect(isGenerated(target, intent, spaFallback)).toBe(isMade)
  })
})

describe('/llms.txt', () => {
  const at = (path: string, head: string) => ({ address: `https://a.test${path}`, head })
  test('has a title, what it is about, and a line for each page', () => {
    const text = llmsTxt(
      'a.test',
      [
        at('/', '<title>My &amp; site</title><meta content="All about it" name=description>'),
        at('/docs/a', '<TITLE lang=en>\n A [1] </TITLE>'),
        at('/b', '<p>no title'),
      ],
      3,
    )
    expect(text).toBe(
      [
        '# My & site',
        '',
        '> All about it',
        '',
        'Every page answers `Accept: text/markdown` with Markdown.',
        '',
        '## Pages',
        '',
        '- [My & site](https://a.test/)',
        '- [A \\[1\\]](https://a.test/docs/a)',
        '- [/b](https://a.test/b)',
        '',
        '3 more pages are not listed.',
        '',
      ].join('\n'),
    )
  })
  test('is named by its host where the landing page has no title', () => {
    expect(llmsTxt('a.test', [at('/', '')], 0)).toMatch(/^# a\.test\n\nEvery page/)
  })
})
