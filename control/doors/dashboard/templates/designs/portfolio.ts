/** A portfolio: a few words, then the work. */
import { html, safeUrl, type Html } from '../../../../../shared/pages/html.ts'
import { linesOf, templateDocument, type Template } from './template.ts'

const css = `
main{max-width:72rem;margin:0 auto;padding:clamp(1.5rem,6vw,5rem) clamp(1.25rem,5vw,3rem)}
header{max-width:46rem;margin-bottom:clamp(2.5rem,8vw,6rem)}
.name{color:var(--accent);font-weight:600;margin-bottom:1.5rem}
h1{font-size:clamp(2rem,1.3rem + 3.4vw,3.75rem);font-weight:680;margin-bottom:1.25rem}
.about{font-size:1.2rem;color:var(--soft)}
.work{display:grid;gap:clamp(1.5rem,4vw,3rem);grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr))}
.work a,.work div.item{display:block;color:inherit;text-decoration:none}
.cover{aspect-ratio:4/3;border-radius:1rem;overflow:hidden;margin-bottom:1rem;
  background:linear-gradient(150deg,color-mix(in srgb,var(--accent) var(--mix),var(--card)),color-mix(in srgb,var(--accent) 12%,var(--paper)));
  border:1px solid var(--line)}
.cover img{width:100%;height:100%;object-fit:cover}
.work li:nth-child(3n+1){--mix:62%}.work li:nth-child(3n+2){--mix:36%}.work li:nth-child(3n){--mix:82%}
h2{font-size:1.25rem}.work a:hover h2{color:var(--accent)}.work p{color:var(--soft);margin:.25rem 0 0}
footer{margin-top:clamp(3rem,9vw,7rem);padding-top:2rem;border-top:1px solid var(--line);font-size:1.2rem}
`

export const portfolio: Template = {
  name: 'portfolio',
  title: 'Portfolio',
  summary: 'A short introduction and a grid of your work.',
  fields: [
    { name: 'name', label: 'Your name', kind: 'text', required: true },
    { name: 'headline', label: 'One sentence about your work', kind: 'text', required: true },
    { name: 'about', label: 'A little more', kind: 'long' },
    {
      name: 'projects',
      label: 'Projects',
      kind: 'lines',
      hint: 'One per line: Title | What it is | https://link | https://image (link and image are optional)',
    },
    { name: 'email', label: 'E-mail', kind: 'email' },
    { name: 'colour', label: 'Colour', kind: 'colour' },
  ],
  sample: {
    name: 'Jonas Okafor',
    headline: 'Photographs and short films about people who work at night.',
    about: 'Based in Lisbon, often on a train. Available for editorial work and longer documentary projects.',
    projects: [
      'The bakers | A year between two and six in the morning',
      'Line 7 | Portraits of night bus drivers',
      'Harbour | A short film, 14 minutes',
      'Still open | Kiosks after midnight',
      'Signal | The people who watch the rails',
      'First light | A series in thirty frames',
    ].join('\n'),
    email: 'jonas@example.com',
    colour: 'ember',
  },
  render(values) {
    return templateDocument({
      title: `${values['name']}: ${values['headline']}`,
      description: values['about'] || values['headline'] || '',
      colour: values['colour'],
      css,
      body: html`
        <main>
          <header>
            <p class="name">${values['name']}</p>
            <h1>${values['headline']}</h1>
            ${values['about'] && html`<p class="about">${values['about']}</p>`}
          </header>
          <ul class="work">${linesOf(values['projects']).map(project)}</ul>
          ${
            values['email'] &&
            html`<footer>Say hello: <a href="mailto:${values['email']}">${values['email']}</a></footer>`
          }
        </main>
      `,
    })
  },
}

function project([title, text, link, image]: string[]): Html {
  const href = safeUrl(link ?? '')
  const picture = safeUrl(image ?? '')
  const inside = html`
    <div class="cover">${picture !== undefined && html`<img src="${picture}" alt="" loading="lazy">`}</div>
    <h2>${title}</h2>
    ${text && html`<p>${text}</p>`}
  `
  return href === undefined
    ? html`<li><div class="item">${inside}</div></li>`
    : html`<li><a href="${href}">${inside}</a></li>`
}
