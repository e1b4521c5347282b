/** Country and currency of an account: resolved once, at sign-up, and then fixed. */
import { onFirstUse } from '../../../shared/values/on-first-use.ts'

/** ISO 3166-1 alpha-2. */
const COUNTRIES: readonly string[] =
  `AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF
CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI
GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ
LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO
NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST
SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW`.split(
    /\s+/,
  )

const KNOWN: ReadonlySet<string> = new Set(COUNTRIES)

/** The European Union, and who else pays in euro. */
const EURO_COUNTRIES = `AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK AD MC SM VA ME`
const POUND_COUNTRIES = `GB GG IM JE`

export const CURRENCIES = ['eur', 'gbp', 'usd'] as const
export type Currency = (typeof CURRENCIES)[number]

const CURRENCY_OF: ReadonlyMap<string, Currency> = new Map([
  ...EURO_COUNTRIES.split(' ').map((country) => [country, 'eur'] as const),
  ...POUND_COUNTRIES.split(' ').map((country) => [country, 'gbp'] as const),
])

const DEFAULT_COUNTRY = 'US'

/** Code and name, in the order in which people look for theirs. Made when the first form shows them: sorting names takes a moment. */
export const countryNames = onFirstUse((): readonly (readonly [code: string, name: string])[] => {
  const names = new Intl.DisplayNames('en', { type: 'region' })
  return COUNTRIES.map((code) => [code, names.of(code) ?? code] as const).toSorted(([, one], [, other]) =>
    one.localeCompare(other, 'en'),
  )
})

export function currencyOf(country: string): Currency {
  return CURRENCY_OF.get(country) ?? 'usd'
}

/** What the trusted proxy saw, else what the form says, else the region of the preferred language. */
export function resolveCountry(hints: {
  geo?: string | undefined
  form?: string | undefined
  acceptLanguage?: string | undefined
}): string {
  return known(hints.geo) ?? known(hints.form) ?? regionOf(hints.acceptLanguage) ?? DEFAULT_COUNTRY
}

/** Does the trusted proxy say it? Then the person is not asked. */
export function isCountry(code: string | undefined): boolean {
  return known(code) !== undefined
}

function known(text: string | undefined): string | undefined {
  const code = text?.trim().toUpperCase()
  return code !== undefined && KNOWN.has(code) ? code : undefined
}

/** `de-AT,de;q=0.9,en-US;q=0.8` → AT. The first tag with a region; browsers list them by preference. */
function regionOf(acceptLanguage: string | undefined): string | undefined {
  for (const tag of (acceptLanguage ?? '').slice(0, 500).split(',')) {
    const region = /^\s*[a-z]{2,3}(?:-[a-z]{4})?-([a-z]{2})\b/i.exec(tag)?.[1]
    const country = known(region)
    if (country) return country
  }
  return undefined
}
