/** Pages whose only script is the copy button. */
import { enableCopying, enableScriptStyles } from './elements.ts'

enableScriptStyles()
enableCopying(document)
