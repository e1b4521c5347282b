/** Link in bio: one name, a handful of links, big enough for a thumb. */
import { html, safeUrl, type Html } from '../../../../../shared/pages/html.ts'
import { linesOf, templateDocument, type Template } from './template.ts'

const css = `
body{display:grid;min-height:100vh;min-height:100dvh;place-items:center;
  background:radial-gradient(80rem 40rem at 50% -10rem,color-mix(in srgb,var(--accent) 22%,var(--paper)),var(--paper))}
main{width:100%;max-width:28rem;padding:3.5rem 1.25rem;text-align:center}
.face{width:6rem;height:6rem;margin:0 auto 1.25rem;border-radius:50%;display:grid;place-items:center;
  overflow:hidden;background:var(--accent);color:var(--on-accent);font-size:2.25rem;font-weight:650}
.face img{width:100%;height:100%;object-fit:cover}
h1{font-size:1.75rem}.bio{color:var(--soft);margin:.5rem 0 2rem;text-wrap:balance}
ul{display:grid;gap:.75rem}
li a{display:block;padding:1rem 1.25rem;border-radius:1rem;background:var(--card);
  border:1px solid var(--line);color:var(--ink);font-weight:560;text-decoration:none;
  transition:transform .15s,border-color .15s}
li a:hover{border-color:var(--accent);transform:translateY(-2px)}
@media (prefers-reduced-motion:reduce){li a{transition:none}li a:hover{transform:none}}
`

export const links: Template = {
  name: 'links',
  title: 'Link in bio',
  summary: 'One page for all your links, made for phones.',
  fields: [
    { name: 'name', label: 'Your name', kind: 'text', required: true },
    { name: 'bio', label: 'One line about you', kind: 'text' },
    { name: 'photo', label: 'Photo address', kind: 'url', hint: 'Optional. Without it your initial is shown.' },
    { name: 'links', label: 'Links', kind: 'lines', required: true, hint: 'One per line: Label | https://address' },
    { name: 'colour', label: 'Colour', kind: 'colour' },
  ],
  sample: {
    name: 'Mira Kovač',
    bio: 'Ceramics, small batches, Tuesdays at the market.',
    photo: '',
    links: [
      'Shop | https://example.com/shop',
      'Market days | https://example.com/market',
      'Instagram | https://example.com/instagram',
      'Newsletter | https://example.com/letter',
      'Write to me | mailto:mira@example.com',
    ].join('\n'),
    colour: 'plum',
  },
  render(values) {
    const photo = safeUrl(values['photo'] ?? '')
    return templateDocument({
      title: values['name'] ?? '',
      description: values['bio'] ?? '',
      colour: values['colour'],
      css,
      body: html`
        <main>
          <div class="face" aria-hidden="true">
            ${photo === undefined ? [...(values['name'] ?? '')][0] : html`<img src="${photo}" alt="">`}
          </div>
          <h1>${values['name']}</h1>
          ${values['bio'] && html`<p class="bio">${values['bio']}</p>`}
          <ul>${linesOf(values['links']).map(link)}</ul>
        </main>
      `,
    })
  },
}

function link([label, address]: string[]): Html | undefined {
  const href = safeUrl(address ?? label ?? '')
  return href === undefined ? undefined : html`<li><a href="${href}">${label}</a></li>`
}
