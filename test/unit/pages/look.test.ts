import { globSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { badgeFrames, badgeHtml } from '../../../edge/rewrite/badge.ts'
import { closedPage, errorPage, unlockPage } from '../../../edge/gate/pages.ts'
import { contrastOf, HOUSE_PALETTE, paletteOf } from '../../../shared/pages/accent.ts'
import { HOUSE_LOOK, paletteCss, programNameOf, type Look } from '../../../shared/pages/look.ts'
import { createStandalonePages } from '../../../shared/pages/shell.ts'
import { ConfigError, EnvReader } from '../../../shared/settings/env.ts'
import { logoOf, MAX_LOGO_BYTES, readLook, senderOf } from '../../../shared/settings/look.ts'
import { footerLinks } from '../../../control/doors/dashboard/frame/layout.ts'

const SVG = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0h9v9"/></svg>')
const ACME: Look = {
  name: 'Acme & Sons',
  logo: { type: 'image/svg+xml', bytes: SVG },
  palette: paletteOf('#7a1fa2'),
  links: [],
}

describe('an accent of the operator’s choice is readable', () => {
  const colours = ['#7a1fa2', '#ffff00', '#ffffff', '#000000', '#ff0000', '#00ff7f', '#0057b8', '#8a8a8a', '#0a6864']
  test.each(colours)('%s', (colour) => {
    const { light, dark } = paletteOf(colour)
    for (const surface of ['#ffffff', '#f6f9f8', '#ecf2f0']) {
      expect(contrastOf(light.accent, surface), `accent on ${surface}`).toBeGreaterThanOrEqual(4.5)
      expect(contrastOf(light.strong, surface), `strong on ${surface}`).toBeGreaterThanOrEqual(4.5)
    }
    for (const surface of ['#0d1514', '#14201e', '#0a100f']) {
      expect(contrastOf(dark.accent, surface), `accent on ${surface}`).toBeGreaterThanOrEqual(4.5)
      expect(contrastOf(dark.strong, surface), `strong on ${surface}`).toBeGreaterThanOrEqual(4.5)
    }
    for (const { accent, strong, soft, onAccent } of [light, dark]) {
      expect(contrastOf(strong, soft), 'strong on soft').toBeGreaterThanOrEqual(4.5)
      expect(contrastOf(onAccent, accent), 'a button').toBeGreaterThanOrEqual(4.5)
    }
  })

  test('a colour that is readable already stays as it was chosen', () => {
    expect(paletteOf('#7a1fa2').light.accent).toBe('#7a1fa2')
  })

  test('the house adds no rules to its own', () => {
    expect(paletteCss(HOUSE_LOOK)).toBe('')
    expect(paletteCss(ACME)).toContain('--accent:#7a1fa2')
  })
})

test('every page and the badge of the edge carry the name of the service, and no other', () => {
  const house = { baseUrl: 'https://pages.acme.test', host: 'x.acme.test', look: ACME }
  const pages = [
    closedPage('unknown', house),
    closedPage('expired', house),
    errorPage(500, { baseUrl: house.baseUrl, look: ACME }),
    unlockPage({ ...house, next: '/' }),
  ].map(({ body }) => body.toString())
  const badge = badgeHtml({ baseUrl: house.baseUrl, host: house.host, name: ACME.name })
  for (const text of [...pages, badge, badgeFrames(badge, '', ACME.name).close]) {
    expect(text).toMatch(/Acme (?:&amp;|%26(?:amp%3B)?) Sons/)
    expect(text.replaceAll(/dropway-badge|\/\.dropway\//g, '')).not.toMatch(/dropway/i)
  }
})

test('what visitors, members and programs are shown takes its name from the settings: no source has one of its own', () => {
  const root = path.join(import.meta.dirname, '../../../')
  const sources = globSync('{edge,shared,control}/**/*.{ts,md,css,js}', { cwd: root })
    // Words of the operator's own terminal; guides that people read are among the rest.
    .filter((file) => !file.startsWith('control/operations/') && !file.endsWith('README.md'))
  const named = sources.filter((file) => {
    const text = readFileSync(path.join(root, file), 'utf8')
    const code = file.endsWith('.ts') ? text.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '') : text
    return code.includes('Dropway')
  })
  expect(named.toSorted()).toEqual([
    // The licence's note on /imprint.
    'control/doors/dashboard/public/service/service-pages.ts',
    'shared/pages/look.ts',
  ])
})

test('a logo comes along inside the page, and its policy lets exactly that in', () => {
  const { body, headers } = createStandalonePages(ACME)({ title: 'T', heading: 'H', lead: '', home: '/' })
  expect(body).toContain(`<img src="data:image/svg+xml;base64,${SVG.toString('base64')}" alt="">`)
  expect(headers['content-security-policy']).toContain("img-src 'self' data:;")
})

describe('settings', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'look-'))
  const file = (name: string, bytes: Buffer): string => {
    writeFileSync(path.join(folder, name), bytes)
    return path.join(folder, name)
  }
  const read = (environment: Record<string, string>): Look => {
    const env = new EnvReader(environment)
    return env.finish(readLook(env))
  }

  test('without any the house looks as it does', () => {
    expect(read({})).toEqual(HOUSE_LOOK)
    expect(read({}).palette).toBe(HOUSE_PALETTE)
  })

  test('all of them', () => {
    const look = read({
      SERVICE_NAME: 'Acme Pages',
      SERVICE_LOGO: file('logo.svg', SVG),
      SERVICE_ACCENT: '#7A1FA2',
      SERVICE_LINKS: 'Legal=https://acme.test/legal?a=b, Help=mailto:it@acme.test, Rules=/terms',
    })
    expect(look).toMatchObject({ name: 'Acme Pages', logo: { type: 'image/svg+xml' } })
    expect(look.links).toEqual([
      { label: 'Legal', url: 'https://acme.test/legal?a=b' },
      { label: 'Help', url: 'mailto:it@acme.test' },
      { label: 'Rules', url: '/terms' },
    ])
  })

  test.each([
    [{ SERVICE_NAME: 'x'.repeat(61) }, /SERVICE_NAME must be one line of at most 60/],
    [{ SERVICE_NAME: 'a\nb' }, /SERVICE_NAME/],
    [{ SERVICE_NAME: '<b>' }, /SERVICE_NAME/],
    [{ SERVICE_LOGO: '/nowhere/logo.png' }, /SERVICE_LOGO must be a file that can be read/],
    [{ SERVICE_ACCENT: 'purple' }, /SERVICE_ACCENT must be a colour such as #7a1fa2, not "purple"/],
    [{ SERVICE_LINKS: 'Legal' }, /SERVICE_LINKS must list "Label=https/],
    [{ SERVICE_LINKS: 'Evil=javascript:alert(1)' }, /SERVICE_LINKS must list/],
    [{ SERVICE_LINKS: 'Evil=//elsewhere.test' }, /SERVICE_LINKS must list/],
    [{ SERVICE_LINKS: Array.from({ length: 9 }, (_, i) => `L${i}=/terms`).join(',') }, /more than 8 links/],
  ])('%j is refused', (environment, message) => {
    expect(() => read(environment)).toThrow(ConfigError)
    expect(() => read(environment)).toThrow(message)
  })

  test('another picture is refused as the logo', () => {
    const SERVICE_LOGO = file('logo.gif', Buffer.from('GIF89a'))
    expect(() => read({ SERVICE_LOGO })).toThrow(/SERVICE_LOGO must be an SVG or a PNG picture/)
  })

  test('a logo is known by its bytes', () => {
    const png = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), Buffer.alloc(8)])
    expect(logoOf(png)).toEqual({ type: 'image/png', bytes: png })
    expect(logoOf(Buffer.from('<?xml version="1.0"?>\n<svg/>'))).toMatchObject({ type: 'image/svg+xml' })
    expect(logoOf(Buffer.from('<html><p>svg</html>'))).toBe('must be an SVG or a PNG picture')
    expect(logoOf(Buffer.concat([png, Buffer.alloc(MAX_LOGO_BYTES)]))).toBe('must be a file of at most 64 kB')
  })
})

test.each([
  ['Dropway', 'Dropway <a@b.test>'],
  ['Büro 7', 'Büro 7 <a@b.test>'],
  ['Acme, Inc.', '"Acme, Inc." <a@b.test>'],
  ['a\\b', '"ab" <a@b.test>'],
])('%s as the sender of mails', (name, expected) => {
  expect(senderOf(name, 'a@b.test')).toBe(expected)
})

test.each([
  ['Dropway', 'dropway'],
  ['Acme Pages!', 'acme-pages'],
  ['Bücher & Söhne', 'bucher-sohne'],
  ['株式会社', 'service'],
])('%s for programs', (name, expected) => {
  expect(programNameOf({ name })).toBe(expected)
})

test('a link of the operator stands in the place of ours of the same name, others behind ours', () => {
  const links = footerLinks([
    { label: 'help', url: 'https://help.acme.test' },
    { label: 'Legal', url: 'https://acme.test/legal' },
  ])
  expect(links.filter(({ label }) => label.toLowerCase() === 'help')).toEqual([
    { label: 'help', url: 'https://help.acme.test' },
  ])
  expect(links.findIndex(({ label }) => label === 'help')).toBeLessThan(links.findIndex(({ url }) => url === '/status'))
  expect(links.at(-1)).toEqual({ label: 'Legal', url: 'https://acme.test/legal' })
  expect(footerLinks([]).map(({ url }) => url)).toContain('/help')
})
