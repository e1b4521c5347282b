/** What is made when it is first asked for, and kept: a start does not wait for what nobody may ever ask for. */
export function onFirstUse<Thing>(make: () => Thing): () => Thing {
  let made: { readonly thing: Thing } | undefined
  return () => (made ??= { thing: make() }).thing
}
