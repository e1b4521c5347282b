/** Small things every page script needs. */
export function find<Kind extends Element>(root: ParentNode, selector: string, kind: new () => Kind): Kind {
  const found = root.querySelector(selector)
  if (!(found instanceof kind)) throw new Error(`The page has no ${selector}`)
  return found
}

/** Style sheets hide copy buttons where scripts are off; here they learn to work. */
export function enableCopying(root: ParentNode): void {
  for (const button of root.querySelectorAll<HTMLButtonElement>('[data-copy]')) {
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(button.dataset['copy'] ?? '')
      const label = button.textContent
      button.textContent = 'Copied'
      setTimeout(() => (button.textContent = label), 1500)
    })
  }
}
