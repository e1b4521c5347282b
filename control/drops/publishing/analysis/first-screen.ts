/** What a visitor's browser asks for first: the landing page and what it loads, through its stylesheets. Pure; linear. */
import { decodeLinks, type EncodedLinks } from './links.ts'

/** Paths of the version, the landing page among them. `linksOf` knows what pages and stylesheets name. */
export function firstScreenOf(
  landing: string,
  linksOf: (path: string) => EncodedLinks | undefined,
): ReadonlySet<string> {
  // What is added while it is walked through is walked through too.
  const paths = new Set([landing])
  for (const path of paths) {
    const links = linksOf(path)
    if (links === undefined || (path !== landing && !isStylesheet(path))) continue
    for (const { target, use } of decodeLinks(links).local) if (use !== 'page') paths.add(target)
  }
  return paths
}

function isStylesheet(path: string): boolean {
  return /\.css$/i.test(path)
}
