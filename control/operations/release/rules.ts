/** What a release is called, what it tells, and what must be so before there is one. */

export interface Release {
  /** What package.json says. */
  readonly version: string
  /** Versions that other files say, by their names. */
  readonly versions: Readonly<Record<string, string | undefined>>
  readonly changelog: string
  /** What `git status --porcelain` says. */
  readonly uncommitted: string
  /** The commit that the tag of this version names; undefined when there is no such tag. */
  readonly tagged: string | undefined
  readonly head: string
}

/** The tag of a release, in git. Images are called by the version alone. */
export function tagOf(version: string): string {
  return `v${version}`
}

/** The part of the changelog about one version, without its heading; undefined when there is none. */
export function changelogSection(changelog: string, version: string): string | undefined {
  const headings = [...changelog.matchAll(/^## \[([^\]]+)\].*$/gm)]
  const index = headings.findIndex(([, name]) => name === version)
  if (index === -1) return undefined
  const { index: start, 0: heading } = headings[index]!
  return changelog.slice(start + heading.length, headings[index + 1]?.index).trim()
}

/** Why this cannot be released; empty when it can. Each says what to do. */
export function releaseProblems(release: Release): string[] {
  const { version, versions, changelog, uncommitted, tagged, head } = release
  const section = changelogSection(changelog, version)
  const differing = Object.entries(versions).filter(([, other]) => other !== version)
  const heading = new RegExp(String.raw`^## \[${version.replaceAll('.', String.raw`\.`)}\] - (.*)$`, 'm').exec(
    changelog,
  )
  return [
    ...(/^\d+\.\d+\.\d+$/.test(version) ? [] : [`package.json: "${version}" is not major.minor.patch`]),
    ...differing.map(([file, other]) => `${file}: says ${other ?? 'no version'}; package.json says ${version}`),
    ...(section ? [] : [`CHANGELOG.md: write what changed under "## [${version}] - <date>"`]),
    ...(heading && !/^\d{4}-\d\d-\d\d$/.test(heading[1]!)
      ? [`CHANGELOG.md: replace "${heading[1]}" by the day of the release, as 2027-01-31`]
      : []),
    ...(uncommitted === '' ? [] : ['git: commit or put aside what is not committed; a release is a commit']),
    ...(tagged === undefined || tagged === head
      ? []
      : [`git: ${tagOf(version)} names another commit; raise the version in package.json`]),
  ]
}
