/** Pages whose only script is the copy button. */
import { enableCopying } from './elements.ts'

enableCopying(document)
