/** Pages whose only script is the copy button. */
import { enableCopying } from './modules/elements.ts'

enableCopying(document)
