/** `npm run test:image-figures`: how soon the image is ready, and its memory when idle. A clock judges that. */
import { defineConfig } from 'vitest/config'
import image from './vitest.config.ts'

export default defineConfig({ ...image, test: { ...image.test, include: ['test/image/figures.test.ts'], exclude: [] } })
