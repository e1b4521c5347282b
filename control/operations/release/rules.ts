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
export function releaseTag(version: string): string {
  return `v${version}`
}

interface Section {
  /** When it was released, as its heading says. */
  readonly day: string
  readonly text: string
}

/** Sections begin with `## [0.2.0] - 2027-01-31`. */
function sectionOf(changelog: string, version: string): Section | undefined {
  const name = `${version}]`
  const section = `\n${changelog}`.split('\n## [').find((part) => part.startsWith(name))
  if (section === undefined) return undefined
  const rest = section.slice(name.length)
  return { day: rest.replace(/\n[^]*/, '').replace(' - ', ''), text: rest.replace(/.*/, '').trim() }
}

/** The part of the changelog about one version, without its heading; undefined when there is none. */
export function changelogSection(changelog: string, version: string): string | undefined {
  return sectionOf(changelog, version)?.text
}

/** Why this cannot be released; empty when it can. Each says what to do. */
export function releaseProblems(release: Release): string[] {
  const { version, versions, changelog, uncommitted, tagged, head } = release
  const section = sectionOf(changelog, version)
  const differing = Object.entries(versions).filter(([, other]) => other !== version)
  return [
    ...(/^\d+\.\d+\.\d+$/.test(version) ? [] : [`package.json: "${version}" is not major.minor.patch`]),
    ...differing.map(([file, other]) => `${file}: says ${other ?? 'no version'}; package.json says ${version}`),
    ...(section?.text ? [] : [`CHANGELOG.md: write what changed under "## [${version}] - <date>"`]),
    ...(section && !/^\d{4}-\d\d-\d\d$/.test(section.day)
      ? [`CHANGELOG.md: replace "${section.day}" by the day of the release, as 2027-01-31`]
      : []),
    ...(uncommitted === '' ? [] : ['git: commit or put aside what is not committed; a release is a commit']),
    ...(tagged === undefined || tagged === head
      ? []
      : [`git: ${releaseTag(version)} names another commit; raise the version in package.json`]),
  ]
}
