import { defineConfig } from 'vitest/config'
import { TEST_FILES } from './test/support/programs.ts'
import { settingsFor } from './test/support/vitest-settings.ts'

export default defineConfig({ test: settingsFor(TEST_FILES) })
