/** Where a visitor tells us about a drop: on its badge and closed pages, and behind this path of every drop. */
export const REPORT_PATH = '/.dropway/report'

/** The report page with the drop's address filled in. Drops are served on the port of the service. */
export function reportAddressOf(baseUrl: string, host: string): string {
  const { port } = new URL(baseUrl)
  const address = `https://${host}${port === '' ? '' : `:${port}`}/`
  return `${baseUrl}/report?url=${encodeURIComponent(address)}`
}
