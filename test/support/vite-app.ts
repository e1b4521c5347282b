/** A small app as Vite builds it: hashed chunks that are loaded when they are needed, each of which says its version. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { build } from 'vite'

/** The files of one version, by path. `folder` is for the sources. Its `show(page)` loads a page and shows its text. */
export async function buildViteApp(
  folder: string,
  version: number,
  pages: readonly string[],
): Promise<Record<string, string>> {
  const root = path.join(folder, `v${version}`)
  await mkdir(path.join(root, 'pages'), { recursive: true })
  for (const page of pages) {
    await writeFile(
      path.join(root, 'pages', `${page}.js`),
      `import './${page}.css'\nexport const text = '${page} of ${version}'`,
    )
    await writeFile(path.join(root, 'pages', `${page}.css`), `main { --of-${page}: ${version} }`)
  }
  const main = `
    const pages = { ${pages.map((page) => `${page}: () => import('./pages/${page}.js')`).join(', ')} }
    document.body.dataset.version = '${version}'
    window.show = async (page) => (document.querySelector('main').textContent = (await pages[page]()).text)`
  await writeFile(path.join(root, 'main.js'), main)
  await writeFile(
    path.join(root, 'index.html'),
    '<title>app</title><main></main><script type="module" src="/main.js"></script>',
  )
  await build({ configFile: false, logLevel: 'error', root, build: { outDir: 'dist', minify: true } })
  const dist = path.join(root, 'dist')
  const names = (await readdir(dist, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const files: Record<string, string> = {}
  for (const { parentPath, name } of names) {
    const file = path.join(parentPath, name)
    files[path.relative(dist, file)] = await readFile(file, 'utf8')
  }
  return files
}
