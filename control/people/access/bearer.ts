/**
 * The token of `Authorization: Bearer …` (RFC 6750 §2.1); undefined for another scheme, or when nothing or too much
 * follows. Blanks around the value are no part of it (RFC 9110 §5.5), and the name of the scheme has no case (§11.1).
 */
export function bearerTokenOf(header: string | undefined): string | undefined {
  return /^bearer +(\S+)$/i.exec(header?.trim() ?? '')?.[1]
}
