import { expect, test } from 'vitest'
import { filenameOfText } from '../../../control/drops/publishing/files/pasted-text.ts'

const CENTRED = '<p align="center">\n  <img src="logo.svg">\n</p>\n'

test.each([
  ['<!DOCTYPE html><title>x', 'index.html'],
  ['  \n<html>', 'index.html'],
  ['<!-- a comment --> <body>', 'index.html'],
  ['<title>x</title>\n\n# not a heading', 'index.html'],
  ['<script>\n\nrun()\n</script>', 'index.html'],
  ['<style>\n\na{}\n</style><p>x', 'index.html'],
  ['<div>x</div>', 'index.html'],
  ['<h1>Hello</h1>\n<p>A page\nin two lines.</p>', 'index.html'],
  ['<div>\n<pre>\n\n# a shell\n- x\n</pre>\n</div>', 'index.html'],
  ['<ul>\n  <li>one</li>\n\n  <li>two</li>\n</ul>', 'index.html'],
  ['# Heading', 'index.md'],
  ['<b>bold</b> words', 'index.md'],
  ['<https://example.com>', 'index.md'],
  ['<article-list>', 'index.md'],
  ['1 < 2', 'index.md'],
  ['', 'index.md'],
  ['<!-- never ends', 'index.md'],
  [`${CENTRED}\n# Tool`, 'index.md'],
  [`${CENTRED}\nA paragraph without a tag.`, 'index.md'],
  [`${CENTRED}- one\n- two`, 'index.md'],
  [`${CENTRED}1. one`, 'index.md'],
  [`${CENTRED}> quoted`, 'index.md'],
  [`${CENTRED}| a | b |`, 'index.md'],
  [`${CENTRED}[![build](b.svg)](ci)`, 'index.md'],
  [`${CENTRED}[docs]: https://example.com`, 'index.md'],
  [`${CENTRED}\`\`\`sh\nmake\n\`\`\``, 'index.md'],
  ['<h1>Tool</h1>\nSee [the docs](docs.md).', 'index.md'],
  ['<h1>Tool</h1>\nIt is **fast**.', 'index.md'],
  ['<h1 align="center">Tool</h1>\n\n## Install', 'index.md'],
  ['<pre>x</pre>\n<div>', 'index.md'],
])('%j is %s', (text, name) => {
  expect(filenameOfText(text)).toBe(name)
})

test('what the publisher says wins', () => {
  expect(filenameOfText('# x', 'html')).toBe('index.html')
  expect(filenameOfText('<html>', 'markdown')).toBe('index.md')
})

test('only the beginning of a long text decides', () => {
  expect(filenameOfText(`<div>${' '.repeat(200_000)}\n# late`)).toBe('index.html')
})
