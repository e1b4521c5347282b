/** What the consent banner says. Short and plain: what happens, who sees it, and two equal answers. */
import type { Language } from './language.ts'

export interface ConsentText {
  readonly title: string
  readonly text: string
  readonly accept: string
  readonly reject: string
}

export const consentTexts: Readonly<Record<Language, ConsentText>> = {
  en: {
    title: 'May this site use cookies?',
    text: 'They help its owner see how the site is used. Without your consent none are set.',
    accept: 'Accept',
    reject: 'Reject',
  },
  de: {
    title: 'Darf diese Seite Cookies verwenden?',
    text: 'Sie zeigen dem Betreiber, wie die Seite genutzt wird. Ohne Ihre Zustimmung werden keine gesetzt.',
    accept: 'Zustimmen',
    reject: 'Ablehnen',
  },
  fr: {
    title: 'Ce site peut-il utiliser des cookies ?',
    text: 'Ils aident son propriétaire à comprendre comment le site est utilisé. Sans votre accord, aucun cookie n’est déposé.',
    accept: 'Accepter',
    reject: 'Refuser',
  },
  es: {
    title: '¿Puede este sitio usar cookies?',
    text: 'Ayudan a su propietario a saber cómo se usa el sitio. Sin su consentimiento no se instala ninguna.',
    accept: 'Aceptar',
    reject: 'Rechazar',
  },
  it: {
    title: 'Questo sito può usare i cookie?',
    text: 'Aiutano il proprietario a capire come viene usato il sito. Senza il tuo consenso non ne viene impostato nessuno.',
    accept: 'Accetta',
    reject: 'Rifiuta',
  },
  pt: {
    title: 'Este site pode usar cookies?',
    text: 'Ajudam o proprietário a perceber como o site é usado. Sem o seu consentimento, nenhum é guardado.',
    accept: 'Aceitar',
    reject: 'Rejeitar',
  },
  nl: {
    title: 'Mag deze site cookies gebruiken?',
    text: 'Ze laten de eigenaar zien hoe de site wordt gebruikt. Zonder uw toestemming worden er geen geplaatst.',
    accept: 'Accepteren',
    reject: 'Weigeren',
  },
  pl: {
    title: 'Czy ta strona może używać plików cookie?',
    text: 'Pomagają właścicielowi zobaczyć, jak strona jest używana. Bez Twojej zgody żadne nie są zapisywane.',
    accept: 'Akceptuję',
    reject: 'Odrzucam',
  },
  sv: {
    title: 'Får den här webbplatsen använda kakor?',
    text: 'De hjälper ägaren att se hur webbplatsen används. Utan ditt samtycke sparas inga.',
    accept: 'Godkänn',
    reject: 'Avvisa',
  },
  da: {
    title: 'Må dette websted bruge cookies?',
    text: 'De hjælper ejeren med at se, hvordan webstedet bruges. Uden dit samtykke sættes der ingen.',
    accept: 'Accepter',
    reject: 'Afvis',
  },
  fi: {
    title: 'Saako tämä sivusto käyttää evästeitä?',
    text: 'Ne auttavat omistajaa näkemään, miten sivustoa käytetään. Ilman suostumustasi evästeitä ei aseteta.',
    accept: 'Hyväksy',
    reject: 'Hylkää',
  },
  cs: {
    title: 'Smí tento web používat cookies?',
    text: 'Pomáhají provozovateli zjistit, jak se web používá. Bez vašeho souhlasu se žádné neukládají.',
    accept: 'Přijmout',
    reject: 'Odmítnout',
  },
}
