/** Put into the bundle when it is built, so that it is one file. */
declare const DROPWAY_VERSION: string | undefined

export function packageVersion(): string {
  return typeof DROPWAY_VERSION === 'string' ? DROPWAY_VERSION : '0.0.0'
}
