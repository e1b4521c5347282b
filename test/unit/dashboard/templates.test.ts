import { parse, type DefaultTreeAdapterMap } from 'parse5'
import { describe, expect, test } from 'vitest'
import { templates } from '../../../control/doors/dashboard/templates/designs/all.ts'
import { linesOf, readValues } from '../../../control/doors/dashboard/templates/designs/template.ts'

type Node = DefaultTreeAdapterMap['node']

function walk(node: Node, visit: (node: Node) => void): void {
  visit(node)
  if ('childNodes' in node) for (const child of node.childNodes) walk(child, visit)
}

describe.each(templates)('$name', (template) => {
  test('is one complete page without scripts or foreign resources', () => {
    const page = template.render(template.sample)
    expect(page).toMatch(/^<!doctype html>/)
    expect(page).toContain('name="viewport"')
    expect(page).not.toMatch(/<script|<link|@import|url\(/)
    expect(Buffer.byteLength(page)).toBeLessThan(10_000)
  })

  test('renders with every field empty', () => {
    expect(() => template.render(readValues(template, new URLSearchParams()))).not.toThrow()
  })

  test('hostile words in every field stay words', () => {
    const evil = '"><script>alert(1)</script> | javascript:alert(1) | <img src=x onerror=alert(1)>'
    const values = Object.fromEntries(template.fields.map((field) => [field.name, evil]))
    const tags: string[] = []
    const attributes: string[] = []
    walk(parse(template.render(values)), (node) => {
      if (!('tagName' in node)) return
      tags.push(node.tagName)
      for (const attribute of node.attrs) {
        if (attribute.name.startsWith('on') || /^\s*javascript:/i.test(attribute.value)) attributes.push(attribute.name)
      }
    })
    expect(tags).not.toContain('script')
    expect(attributes).toEqual([])
  })

  test('keeps only its own fields, trimmed and bounded', () => {
    const first = template.fields[0]!.name
    const values = readValues(template, new URLSearchParams({ [first]: ` ${'x'.repeat(9000)} `, intruder: 'x' }))
    expect(Object.keys(values)).toEqual(template.fields.map((field) => field.name))
    expect(values[first]).toHaveLength(5000)
  })
})

test('lines are split at bars; empty ones vanish', () => {
  expect(linesOf('a | b\n\n | x\nc')).toEqual([['a', 'b'], ['c']])
})
