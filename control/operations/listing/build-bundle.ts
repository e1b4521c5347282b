/** `npm run build:mcpb`: writes the bundle for desktop clients, the same bytes for the same sources. */
import { createWriteStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import yazl from 'yazl'
import { bundleManifest, ENTRY_POINT } from './bundle.ts'
import { clientPackage, listedTools, readFromRoot } from './listed.ts'

const DIST = path.join(import.meta.dirname, '../../../cli/dist')
/** A zip has a time for each file; this one is nobody's. */
const mtime = new Date('2026-01-01T00:00:00Z')

const { description } = JSON.parse(readFromRoot('server.json')) as { description: string }
const manifest = bundleManifest(clientPackage(), { description, tools: listedTools })
const zip = new yazl.ZipFile()
zip.addBuffer(Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`), 'manifest.json', { mtime })
zip.addBuffer(await readFile(path.join(DIST, 'dropway.js')), ENTRY_POINT, { mtime })
zip.addBuffer(Buffer.from(readFromRoot('LICENSE')), 'LICENSE', { mtime })
zip.end()
const file = path.join(DIST, 'dropway.mcpb')
await pipeline(zip.outputStream, createWriteStream(file))
console.log(path.relative(process.cwd(), file))
