/** The build puts the version into the bundle, so that the client is one file. */
declare const DROPWAY_VERSION: string | undefined

export function packageVersion(): string {
  return typeof DROPWAY_VERSION === 'string' ? DROPWAY_VERSION : '0.0.0'
}
