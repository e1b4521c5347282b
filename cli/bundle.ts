/**
 * Makes the client that is published: one file of plain JavaScript for Node 20 without dependencies, and its types.
 * Node refuses TypeScript inside node_modules, and one file starts faster than forty.
 */
import { chmod, copyFile, readFile } from 'node:fs/promises'
import path from 'node:path'
import { build } from 'vite'

const folder = import.meta.dirname
const { version } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')) as { version: string }

await build({
  configFile: false,
  logLevel: 'warn',
  root: folder,
  define: { DROPWAY_VERSION: JSON.stringify(version) },
  ssr: { noExternal: true },
  build: {
    ssr: 'start.ts',
    outDir: 'dist',
    emptyOutDir: true,
    target: 'node20',
    minify: false,
    rolldownOptions: {
      output: { entryFileNames: 'dropway.js', codeSplitting: false },
      treeshake: { moduleSideEffects: false },
    },
  },
})
await chmod(path.join(folder, 'dist', 'dropway.js'), 0o755)
// Interfaces only, which read the same in a declaration file.
await copyFile(path.join(folder, 'terminal/json-output.ts'), path.join(folder, 'dist', 'dropway.d.ts'))
