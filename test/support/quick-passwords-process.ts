/** Loaded with NODE_OPTIONS=--import into processes of the service that a test starts. */
import { hashQuickly } from './quick-passwords.ts'

hashQuickly(true)
