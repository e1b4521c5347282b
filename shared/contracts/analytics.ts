/** Analytics settings of a site: the value of `analytics` in the API and what the edge injects. */
import { MAX_HOST_CHARS } from './limits.ts'
import { z } from 'zod'

/** A self-hosted PostHog is an https origin and nothing else: it ends up in a script tag. */
const httpsOrigin = z
  .string()
  .max(200)
  .refine((text) => {
    const url = URL.parse(text)
    return url !== null && url.protocol === 'https:' && url.origin === text && /^[a-z0-9.:-]+$/.test(url.host)
  }, 'must be an https origin such as https://ph.example.com')

const hostname = z
  .string()
  .max(MAX_HOST_CHARS)
  .regex(/^(?!-)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+$/, 'must be a domain name such as example.com')

export const analyticsSchema = z.strictObject({
  google_analytics: z
    .strictObject({ measurement_id: z.string().regex(/^G-[A-Z0-9]{4,20}$/, 'must look like G-XXXXXXXXXX') })
    .optional(),
  meta_pixel: z.strictObject({ pixel_id: z.string().regex(/^\d{5,20}$/, 'must be 5 to 20 digits') }).optional(),
  posthog: z
    .strictObject({
      project_key: z.string().regex(/^phc_\w{1,80}$/, 'must look like phc_…'),
      host: httpsOrigin.optional(),
    })
    .optional(),
  plausible: z.strictObject({ domain: hostname }).optional(),
  consent_banner: z.enum(['auto', 'on', 'off']).optional(),
})

export type Analytics = z.infer<typeof analyticsSchema>
