/** A curriculum vitae: one column of facts on a phone, two on paper. */
import { html, safeUrl, type Content, type Html } from '../../../../../shared/pages/html.ts'
import { linesOf, paragraphsOf, templateDocument, type Template } from './template.ts'

const css = `
main{max-width:60rem;margin:0 auto;padding:clamp(1.5rem,6vw,5rem) clamp(1.25rem,5vw,3rem)}
header{padding-bottom:2.5rem;margin-bottom:2.5rem;border-bottom:1px solid var(--line)}
h1{font-size:clamp(2.25rem,1.5rem + 3.5vw,3.75rem);font-weight:700}
.role{font-size:1.3rem;color:var(--accent);margin:.4rem 0 1.25rem}
.contact{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;color:var(--soft)}
section{display:grid;gap:1rem;margin-bottom:2.75rem}
h2{font-size:.9375rem;letter-spacing:0;font-weight:600;color:var(--accent);padding-top:.25rem}
.entry{margin-bottom:1.75rem}.entry:last-child{margin-bottom:0}
h3{font-size:1.125rem}.meta{color:var(--soft);margin:.125rem 0 .375rem}.entry p:last-child{margin-bottom:0}
.skills{display:flex;flex-wrap:wrap;gap:.5rem}
.skills li{padding:.2rem .75rem;border:1px solid var(--line);border-radius:99px;background:var(--card)}
@media (min-width:46rem){section{grid-template-columns:10rem 1fr;gap:2.5rem}}
@media print{
:root{--paper:#fff;--ink:#000;--soft:#444;--card:#fff}
body{font-size:10.5pt}
main{padding:0}
section{break-inside:avoid;margin-bottom:1.5rem}
}
`

export const cv: Template = {
  name: 'cv',
  title: 'CV',
  summary: 'Experience, education and skills on one page that also prints well.',
  fields: [
    { name: 'name', label: 'Your name', kind: 'text', required: true },
    { name: 'role', label: 'What you do', kind: 'text' },
    { name: 'place', label: 'Where you are', kind: 'text' },
    { name: 'email', label: 'E-mail', kind: 'email' },
    { name: 'link', label: 'Website', kind: 'url' },
    { name: 'about', label: 'About you', kind: 'long' },
    {
      name: 'experience',
      label: 'Experience',
      kind: 'lines',
      hint: 'One per line: Years | Role | Company | What you did',
    },
    { name: 'education', label: 'Education', kind: 'lines', hint: 'One per line: Years | Degree | School' },
    { name: 'skills', label: 'Skills', kind: 'lines', hint: 'One per line' },
    { name: 'colour', label: 'Colour', kind: 'colour' },
  ],
  sample: {
    name: 'Ada Lindqvist',
    role: 'Product designer',
    place: 'Gothenburg, Sweden',
    email: 'ada@example.com',
    link: 'https://example.com',
    about:
      'I make complicated tools feel obvious. Ten years of design work in health care and public transport, from the first sketch to the last pixel.',
    experience: [
      '2021 – now | Lead designer | Norrbahn | Redesigned ticketing for four million travellers a month.',
      '2017 – 2021 | Designer | Klar Health | From research to a design system used by nine teams.',
      '2014 – 2017 | Interaction designer | Studio Tall | Exhibits, kiosks and a museum app.',
    ].join('\n'),
    education: '2012 – 2014 | MSc Interaction design | Chalmers\n2009 – 2012 | BA Graphic design | HDK-Valand',
    skills: 'Interaction design\nPrototyping\nUser research\nDesign systems\nHTML and CSS',
    colour: 'ink',
  },
  render(values) {
    const link = safeUrl(values['link'] ?? '')
    return templateDocument({
      title: values['role'] ? `${values['name']}: ${values['role']}` : (values['name'] ?? ''),
      description: (values['about'] ?? '').slice(0, 160),
      colour: values['colour'],
      css,
      body: html`
        <main>
          <header>
            <h1>${values['name']}</h1>
            ${values['role'] && html`<p class="role">${values['role']}</p>`}
            <div class="contact">
              ${values['place'] && html`<span>${values['place']}</span>`}${
                values['email'] && html`<a href="mailto:${values['email']}">${values['email']}</a>`
              }${link !== undefined && html`<a href="${link}">${link.replace(/^https?:\/\/|\/$/g, '')}</a>`}
            </div>
          </header>
          ${section('About', paragraphsOf(values['about']))}
          ${section('Experience', linesOf(values['experience']).map(entry))}
          ${section('Education', linesOf(values['education']).map(entry))}
          ${section('Skills', skills(linesOf(values['skills'])))}
        </main>
      `,
    })
  },
}

function section(title: string, content: readonly Content[]): Html | undefined {
  return content.length === 0
    ? undefined
    : html`
      <section>
        <h2>${title}</h2>
        <div>${content}</div>
      </section>
    `
}

function entry([years, title, place, text]: string[]): Html {
  return html`
    <div class="entry">
      <h3>${title ?? years}</h3>
      <p class="meta">${[place, title && years].filter(Boolean).join(', ')}</p>
      ${text && html`<p>${text}</p>`}
    </div>
  `
}

function skills(lines: string[][]): Html[] {
  return lines.length === 0 ? [] : [html`<ul class="skills">${lines.map(([skill]) => html`<li>${skill}</li>`)}</ul>`]
}
