/**
 * `npm run build`: joins the modules of our programs and threads into files in `built/` (shared/running/built.ts says what
 * for, placing.ts where). With `--sealed`, as for the image, no start compares them with the sources.
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import path from 'node:path'
import { build, type Plugin } from 'vite'
import { buildFolder, builtName, builtScript } from '../../../shared/running/built.ts'
import { beginBuild, createSourceNotes, dropBuild, placeBuild, type SourceNotes } from './placing.ts'

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

/** From the folder of a build. */
const TO_ROOT = '../..'

/** Where a module finds itself, and what it starts: modules read files that lie beside their sources. */
function placeOf(source: string, started: string | undefined, part: string | undefined): string {
  const target = started === undefined ? source : path.join(path.dirname(source), started)
  const isBuilt = started !== undefined && STARTED.includes(target)
  const place = JSON.stringify(isBuilt ? `./${builtName(target)}` : `${TO_ROOT}/${target}`)
  if (started !== undefined) return `new URL(${place}, import.meta.url)`
  if (part === 'url') return `new URL(${place}, import.meta.url).href`
  return `(import.meta.dirname + ${JSON.stringify(`/${TO_ROOT}/${part === 'dirname' ? path.dirname(source) : source}`)})`
}

/** Tells modules their places, packages too, and notes those that are ours. */
function ownPlaces(sources: SourceNotes): Plugin {
  return {
    name: 'own-places',
    enforce: 'pre',
    load(id) {
      const source = path.relative(ROOT, id)
      if (path.isAbsolute(id) && !/(?:^|\/)(?:\.\.|node_modules)\//.test(source)) sources.note(source)
    },
    transform(code, id) {
      if (!path.isAbsolute(id)) return undefined
      const source = path.relative(ROOT, id)
      const text = code.replaceAll(OWN_PLACE, (_whole, started, part) => placeOf(source, started, part))
      return { code: text, map: null }
    },
  }
}

/** The built form knows which one it is. */
function knowsItself(name: string): Plugin {
  return {
    name: 'knows-itself',
    enforce: 'pre',
    transform: (code, id) =>
      id === path.join(ROOT, 'shared/running/built.ts')
        ? code.replace('OWN_BUILD = undefined', `OWN_BUILD = ${JSON.stringify(name)}`)
        : undefined,
  }
}

/** Writes every script, and what they import from elsewhere, without types. */
function stripScripts(name: string, sources: SourceNotes): void {
  const scripts = new Set(globSync(SCRIPTS, { cwd: ROOT }))
  // A set is walked to its end, also when it grows meanwhile.
  for (const script of scripts) {
    const file = path.join(ROOT, script)
    sources.note(script)
    const text = stripTypeScriptTypes(readFileSync(file, 'utf8'))
    const target = builtScript(name, file)
    mkdirSync(path.dirname(target), { recursive: true })
    writeFileSync(target, text)
    for (const [, imported] of text.matchAll(/\bfrom\s*'(\.[\w./-]+\.ts)'/g))
      scripts.add(path.join(path.dirname(script), imported!))
  }
}

async function joinModules(name: string, sources: SourceNotes): Promise<void> {
  await build({
    configFile: false,
    logLevel: 'warn',
    root: ROOT,
    plugins: [knowsItself(name), ownPlaces(sources)],
    ssr: { noExternal: true, external: APART },
    build: {
      ssr: true,
      outDir: buildFolder(ROOT, name),
      target: 'esnext',
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries(STARTED.map((source) => [path.parse(builtName(source)).name, source])),
        output: { chunkFileNames: '[name]-[hash].js', keepNames: true },
      },
    },
  })
}

async function buildPrograms(isSealed: boolean): Promise<void> {
  const sources = createSourceNotes(ROOT)
  sources.note(INSTALLED)
  const name = beginBuild(ROOT, isSealed)
  try {
    await joinModules(name, sources)
    stripScripts(name, sources)
  } catch (error) {
    dropBuild(ROOT, name)
    throw error
  }
  placeBuild(ROOT, { build: name, sources: isSealed ? {} : sources.marks() })
}

await buildPrograms(process.argv.includes('--sealed'))
