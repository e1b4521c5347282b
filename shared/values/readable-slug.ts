/** Slugs for drops whose owner named none, or one that cannot be had. */
import { randomInt } from 'node:crypto'
import { slugProblem } from '../http/hosts.ts'
import { MAX_SLUG_CHARS } from '../contracts/limits.ts'
import { withoutLongMarks } from './nfc.ts'

const ADJECTIVES =
  `amber bold brave bright brisk calm clear clever cosy crisp curious daring dapper eager early easy fair
fancy fine fresh gentle giant glad golden grand happy honest humble ideal jolly keen kind lively lucky mellow merry mild
misty modern neat nimble noble olive opal patient plain polite proud quick quiet rapid ready rosy royal shiny silent
silver simple smart smooth snowy solid spry steady still sunny super sweet swift tidy tiny vivid warm wild wise witty`.split(
    /\s+/,
  )
const NOUNS = `acorn apple arrow badge bay beacon bear birch bird boat book breeze bridge brook canyon cedar cliff cloud
comet coral creek crow dawn deer delta dune eagle echo ember falcon fern field finch fjord flame flint forest fox garden
glade grove harbor hawk hazel heron hill island jade kite lake lantern leaf lily lynx maple meadow mesa moon moss oak
ocean orchid otter owl panda path peak pearl pebble pine planet pond prairie quartz rain raven reef ridge river robin
rose sage sail seal shell sky sparrow spring spruce star stone storm stream summit swan thistle tide tiger trail tulip
valley violet wave willow wind wolf wren`.split(/\s+/)

const TAIL_CHARS = 'abcdefghjkmnpqrstuvwxyz23456789'

/** `calm-otter-7k2m9x`. */
export function randomSlug(): string {
  const pick = (choices: readonly string[] | string): string => choices[randomInt(choices.length)]!
  const tail = Array.from({ length: 6 }, () => pick(TAIL_CHARS)).join('')
  return `${pick(ADJECTIVES)}-${pick(NOUNS)}-${tail}`
}

/** Slugs that are like the wanted text, nearest first; each may be used, if no one has it. */
export function similarSlugs(text: string): string[] {
  const stem = withoutLongMarks(text)
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_SLUG_CHARS - ENDINGS_CHARS)
    .replaceAll(/^-|-$/g, '')
  const wanted = [stem, `${stem}-2`, `my-${stem}`, `the-${stem}`, `${stem}-site`, `${stem}-page`]
  return wanted.filter((slug) => slug !== text && slugProblem(slug) === undefined)
}

/** Room for what is put before or after a name. */
const ENDINGS_CHARS = 5
