/** Small things every page script needs. */
export function find<Kind extends Element>(root: ParentNode, selector: string, kind: new () => Kind): Kind {
  const found = root.querySelector(selector)
  if (!(found instanceof kind)) throw new Error(`The page has no ${selector}`)
  return found
}

/** Copy buttons are hidden until a script is there to make them work. */
export function enableCopying(root: ParentNode): void {
  for (const button of root.querySelectorAll<HTMLButtonElement>('[data-copy]')) {
    button.hidden = false
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(button.dataset['copy'] ?? '')
      const label = button.textContent
      button.textContent = 'Copied'
      setTimeout(() => (button.textContent = label), 1500)
    })
  }
}

export function enableScriptStyles(): void {
  document.documentElement.classList.add('js')
}
