/** `npm run listing:check`: holds what is listed against the rules of registry and directories, and says what is wrong. */
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { SERVICE_PATHS } from '../../doors/dashboard/public/service/service-pages.ts'
import { bundleManifest, ENTRY_POINT } from './bundle.ts'
import { clientPackage, listedTools, readFromRoot, sampleCard, sampleLlmsTxt } from './listed.ts'
import {
  cardProblems,
  llmsTxtProblems,
  pageProblems,
  serverJsonProblems,
  skillProblems,
  toolProblems,
} from './rules.ts'

const client = clientPackage()
const skills = readdirSync(path.join(import.meta.dirname, '../../../skills'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
const problems = [
  ...serverJsonProblems(JSON.parse(readFromRoot('server.json')), client),
  ...toolProblems(listedTools),
  ...cardProblems(sampleCard()),
  ...pageProblems(SERVICE_PATHS),
  ...skills.flatMap((name) => skillProblems(name, readFromRoot('skills', name, 'SKILL.md'))),
  ...llmsTxtProblems(sampleLlmsTxt()),
]
bundleManifest(client, { description: '', tools: listedTools })
for (const problem of problems) console.error(problem)
console.log(
  problems.length === 0
    ? `server.json, ${listedTools.length} tools, the card, ${skills.length} skill, llms.txt and ${ENTRY_POINT} are as the registry and the directories ask.`
    : `${problems.length} to mend.`,
)
process.exitCode = problems.length === 0 ? 0 : 1
