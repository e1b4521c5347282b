/**
 * `npm run build`: joins the modules of our programs and threads into the files in `built/` (shared/running/built.ts says
 * what for). With `--sealed`, as for the image, no start compares them with the sources.
 */
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import path from 'node:path'
import { build, type Plugin } from 'vite'
import { BUILT_FOLDER, builtName, builtScript, listFile, sourceMark } from '../../../shared/running/built.ts'

const ROOT = path.join(import.meta.dirname, '../../../')
/** What is started as a process or as a thread. */
const STARTED = [
  'control/main.ts',
  'control/plane.ts',
  'control/operations/supervisor/main.ts',
  'control/operations/supervisor/supervisor.ts',
  'control/operations/supervisor/redis/stand-in.ts',
  'control/drops/publishing/storage/storing-worker.ts',
  'control/drops/publishing/workers/content-worker.ts',
  'control/drops/publishing/workers/markdown-worker.ts',
  'control/drops/trust/inspector-worker.ts',
  'edge/main.ts',
  'edge/processes/edge.ts',
  'edge/processes/machines/machine-thread.ts',
  'shared/running/watchdog/thread.ts',
]
/** Packages with files of their own that are found in other ways. */
const APART = ['lmdb', 'pino', '@resvg/resvg-wasm', 'uWebSockets.js']
/** Says which packages are there, in which versions. */
const INSTALLED = 'node_modules/.package-lock.json'

/** Scripts that browsers run. */
const SCRIPTS = '{shared/pages,edge/rewrite,control/doors/dashboard}/browser/**/*.ts'

const OWN_PLACE = /new URL\('(\.[^']+\.ts)', import\.meta\.url\)|import\.meta\.(url|dirname|filename)\b/g

/** Where a module finds itself, and what it starts: modules read files that lie beside their sources. */
function placeOf(source: string, started: string | undefined, part: string | undefined): string {
  const target = started === undefined ? source : path.join(path.dirname(source), started)
  const isBuilt = started !== undefined && STARTED.includes(target)
  const place = JSON.stringify(isBuilt ? `./${builtName(target)}` : `../${target}`)
  if (started !== undefined) return `new URL(${place}, import.meta.url)`
  if (part === 'url') return `new URL(${place}, import.meta.url).href`
  return `(import.meta.dirname + ${JSON.stringify(`/../${part === 'dirname' ? path.dirname(source) : source}`)})`
}

/** Tells modules their places, packages too, and notes which of them are ours. */
function ownPlaces(seen: Set<string>): Plugin {
  return {
    name: 'own-places',
    enforce: 'pre',
    transform(code, id) {
      const source = path.relative(ROOT, id)
      if (!path.isAbsolute(id)) return undefined
      if (!/(?:^|\/)(?:\.\.|node_modules)\//.test(source)) seen.add(source)
      const text = code.replaceAll(OWN_PLACE, (_whole, started, part) => placeOf(source, started, part))
      return { code: text, map: null }
    },
  }
}

/** The built form knows that it is one. */
const knowsItself: Plugin = {
  name: 'knows-itself',
  enforce: 'pre',
  transform: (code, id) =>
    id === path.join(ROOT, 'shared/running/built.ts')
      ? code.replace('RUNS_BUILT = false', 'RUNS_BUILT = true')
      : undefined,
}

/** Writes every script, and what they import from elsewhere, without types; returns which there were. */
function stripScripts(): string[] {
  const scripts = new Set(globSync(SCRIPTS, { cwd: ROOT }))
  // A set is walked to its end, also when it grows meanwhile.
  for (const script of scripts) {
    const file = path.join(ROOT, script)
    const text = stripTypeScriptTypes(readFileSync(file, 'utf8'))
    mkdirSync(path.dirname(builtScript(file)), { recursive: true })
    writeFileSync(builtScript(file), text)
    for (const [, imported] of text.matchAll(/\bfrom\s*'(\.[\w./-]+\.ts)'/g))
      scripts.add(path.join(path.dirname(script), imported!))
  }
  return [...scripts]
}

async function buildPrograms(isSealed: boolean): Promise<void> {
  const sources = new Set<string>()
  // The list comes last: without it the sources run.
  rmSync(path.join(ROOT, BUILT_FOLDER), { recursive: true, force: true })
  await build({
    configFile: false,
    logLevel: 'warn',
    root: ROOT,
    plugins: [knowsItself, ownPlaces(sources)],
    ssr: { noExternal: true, external: APART },
    build: {
      ssr: true,
      outDir: BUILT_FOLDER,
      target: 'esnext',
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries(STARTED.map((source) => [path.parse(builtName(source)).name, source])),
        output: { chunkFileNames: '[name]-[hash].js', keepNames: true },
      },
    },
  })
  const compared = [...sources, ...stripScripts(), INSTALLED]
  const marks = Object.fromEntries(compared.map((source) => [source, sourceMark(path.join(ROOT, source))]))
  writeFileSync(listFile(ROOT), JSON.stringify(isSealed ? {} : marks))
}

await buildPrograms(process.argv.includes('--sealed'))
