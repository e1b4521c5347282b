import { defineConfig } from 'vitest/config'
import { TEST_FILES } from './test/support/programs.ts'
import { settingsFor, withQuickPasswords } from './test/support/vitest-settings.ts'

export default defineConfig({ test: withQuickPasswords(settingsFor(TEST_FILES)) })
