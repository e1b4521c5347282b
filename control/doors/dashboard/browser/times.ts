/** Exact times in the reader's own zone. Without this script they are in UTC, and say so. */
const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

export function showOwnTimes(root: ParentNode): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>('time[data-exact]'))
    time.title = FORMAT.format(new Date(time.dateTime))
}

showOwnTimes(document)
