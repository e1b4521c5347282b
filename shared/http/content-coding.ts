/** Bodies of requests are read as they come: no coding is undone, so none may be there (RFC 9110 §8.4). */
export function isEncoded(contentEncoding: string | undefined): boolean {
  return contentEncoding !== undefined && !/^[ \t,]*(?:identity[ \t,]*)*$/i.test(contentEncoding)
}
