import { describe, expect, test } from 'vitest'
import { inspectPage } from '../../../control/drops/trust/phishing.ts'
import { badPages, doubtfulPages, goodPages } from './pages.ts'

const verdictOf = (page: string) => inspectPage(Buffer.from(page)).verdict

describe('the phishing heuristic', () => {
  test.each(Object.entries(goodPages))('publishes %s', (_, page) => {
    expect(verdictOf(page)).toBe('ok')
  })
  test.each(Object.entries(badPages))('refuses %s', (_, page) => {
    expect(verdictOf(page)).toBe('reject')
  })
  test.each(Object.entries(doubtfulPages))('asks a person about %s', (_, page) => {
    expect(verdictOf(page)).toBe('review')
  })
  test.each(['<!-- x -->', '<', ' ', '<style ', '<a alt="">', '<script></script>'])(
    'reads to the end of a page that begins with two megabytes of %s',
    (ballast) => {
      const page = badPages['a bank login that posts elsewhere']!
      expect(verdictOf(ballast.repeat(1_990_000 / ballast.length) + page)).toBe('reject')
    },
  )
  test('names what it found', () => {
    expect(inspectPage(Buffer.from(badPages['a bank login that posts elsewhere']!)).reasons).toContain(
      'a credential form posts to another site',
    )
  })
})
