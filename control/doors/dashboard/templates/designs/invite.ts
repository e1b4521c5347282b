/** An event invitation: what, when, where, and one way to answer. */
import { html, safeUrl } from '../../../../../shared/pages/html.ts'
import { linesOf, paragraphsOf, templateDocument, type Template } from './template.ts'

const css = `
body{display:grid;min-height:100vh;min-height:100dvh;place-items:center;padding:clamp(1rem,4vw,3rem)}
main{width:100%;max-width:40rem;padding:clamp(2rem,7vw,4.5rem);border-radius:1.5rem;background:var(--card);
  border:1px solid var(--line);position:relative;overflow:hidden}
main::before{content:"";position:absolute;inset:0 0 auto;height:.5rem;background:var(--accent)}
.host{color:var(--accent);font-weight:600}
h1{font-size:clamp(2.25rem,1.4rem + 4vw,4rem);font-weight:700;margin:.5rem 0 1.75rem;letter-spacing:-.035em}
dl{display:grid;gap:1.25rem;margin:0 0 2rem}
dt{color:var(--soft);font-size:.9375rem}
dd{margin:0;font-size:1.25rem;font-weight:560}
@media (min-width:34rem){dl{grid-template-columns:1fr 1fr}}
.plan{margin:1.5rem 0;border-top:1px solid var(--line)}
.plan li{display:flex;gap:1.25rem;padding:.625rem 0;border-bottom:1px solid var(--line)}
.plan b{flex:0 0 4.5rem;font-weight:560;color:var(--accent)}
.answer{display:inline-block;margin-top:.75rem;padding:.875rem 1.75rem;border-radius:.875rem;
  background:var(--accent);color:var(--on-accent);font-weight:600;text-decoration:none}
`

export const invite: Template = {
  name: 'invite',
  title: 'Event invite',
  summary: 'What, when and where, with a button to reply.',
  fields: [
    { name: 'title', label: 'What', kind: 'text', required: true },
    { name: 'host', label: 'Who invites', kind: 'text' },
    { name: 'date', label: 'Date', kind: 'date', required: true },
    { name: 'time', label: 'Time', kind: 'time' },
    { name: 'place', label: 'Where', kind: 'text' },
    { name: 'text', label: 'Words to your guests', kind: 'long' },
    { name: 'plan', label: 'Programme', kind: 'lines', hint: 'One per line: 18:00 | Doors open' },
    { name: 'reply', label: 'Reply to', kind: 'text', hint: 'An e-mail address or a link.' },
    { name: 'colour', label: 'Colour', kind: 'colour' },
  ],
  sample: {
    title: 'Summer supper in the orchard',
    host: 'Elif and Tom invite you',
    date: '2027-06-19',
    time: '18:00',
    place: 'The old orchard, Mill Lane 4',
    text: 'One long table, too much food, and a band that only knows nine songs. Bring a cushion and someone you like.',
    plan: '18:00 | Doors and drinks\n19:30 | Supper\n21:00 | Music until it gets dark',
    reply: 'elif@example.com',
    colour: 'moss',
  },
  render(values) {
    const when = dateInWords(values['date'])
    const reply = replyAddress(values['reply'] ?? '', values['title'] ?? '')
    return templateDocument({
      title: values['title'] ?? '',
      description: [values['host'], when, values['place']].filter(Boolean).join(', '),
      colour: values['colour'],
      css,
      body: html`
        <main>
          ${values['host'] && html`<p class="host">${values['host']}</p>`}
          <h1>${values['title']}</h1>
          <dl>
            <div>
              <dt>When</dt>
              <dd>${when}${values['time'] && html`<br>${values['time']}`}</dd>
            </div>
            ${
              values['place'] &&
              html`
                <div>
                  <dt>Where</dt>
                  <dd>${values['place']}</dd>
                </div>
              `
            }
          </dl>
          ${paragraphsOf(values['text'])}
          ${
            values['plan'] &&
            html`
              <ul class="plan">
                ${linesOf(values['plan']).map(([time, what]) => html`<li><b>${time}</b><span>${what}</span></li>`)}
              </ul>
            `
          }
          ${reply !== undefined && html`<a class="answer" href="${reply}">Reply</a>`}
        </main>
      `,
    })
  },
}

function dateInWords(date: string | undefined): string {
  const time = Date.parse(`${date}T00:00:00Z`)
  if (Number.isNaN(time)) return date ?? ''
  return new Date(time).toLocaleDateString('en-GB', {
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    timeZone: 'UTC',
  })
}

function replyAddress(text: string, subject: string): string | undefined {
  if (/^[^\s@:/]+@[^\s@:/]+$/.test(text)) return `mailto:${text}?subject=${encodeURIComponent(subject)}`
  return safeUrl(text)
}
