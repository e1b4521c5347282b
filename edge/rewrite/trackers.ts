/**
 * The four kinds of analytics. Each is a statement or two that define the provider's queue and call what browser/ has:
 * `load` adds the provider's script. Scripts made by a script also run under a page's 'strict-dynamic' policy.
 */
import type { Analytics } from '../../shared/contracts/analytics.ts'
import type { CspNeeds } from './csp.ts'
import { scriptValue } from './script-text.ts'

export interface Tracker {
  readonly setsCookies: boolean
  /** The file of browser/ whose function it calls. */
  readonly script: 'load' | 'meta-pixel'
  /** JavaScript statements. */
  readonly start: string
  readonly csp: Partial<Pick<CspNeeds, 'scriptSrc' | 'connectSrc' | 'imgSrc'>>
}

const POSTHOG_CLOUD = 'https://us.i.posthog.com'

export function trackersOf(analytics: Analytics): Tracker[] {
  const trackers: Tracker[] = []
  if (analytics.google_analytics) trackers.push(googleAnalytics(analytics.google_analytics.measurement_id))
  if (analytics.meta_pixel) trackers.push(metaPixel(analytics.meta_pixel.pixel_id))
  if (analytics.posthog) trackers.push(posthog(analytics.posthog.project_key, analytics.posthog.host ?? POSTHOG_CLOUD))
  if (analytics.plausible) trackers.push(plausible(analytics.plausible.domain))
  return trackers
}

function googleAnalytics(measurementId: string): Tracker {
  const script = `https://www.googletagmanager.com/gtag/js?id=${encodeURIComponent(measurementId)}`
  return {
    setsCookies: true,
    script: 'load',
    start: `w.dataLayer=w.dataLayer||[];w.gtag=w.gtag||function(){w.dataLayer.push(arguments)};w.gtag("js",new Date());w.gtag("config",${scriptValue(measurementId)});load(${scriptValue(script)});`,
    csp: {
      scriptSrc: ['https://www.googletagmanager.com'],
      connectSrc: [
        'https://www.googletagmanager.com',
        'https://*.google-analytics.com',
        'https://*.analytics.google.com',
      ],
      imgSrc: ['https://www.googletagmanager.com', 'https://*.google-analytics.com'],
    },
  }
}

function metaPixel(pixelId: string): Tracker {
  return {
    setsCookies: true,
    script: 'meta-pixel',
    start: `meta(${scriptValue(pixelId)});`,
    csp: {
      scriptSrc: ['https://connect.facebook.net'],
      connectSrc: ['https://connect.facebook.net', 'https://www.facebook.com'],
      imgSrc: ['https://www.facebook.com'],
    },
  }
}

/** PostHog's cloud keeps its scripts on a sister host; a self-hosted one serves both. */
function posthog(projectKey: string, host: string): Tracker {
  const assets = host.replace(/\.i\.posthog\.com$/, '-assets.i.posthog.com')
  return {
    setsCookies: true,
    script: 'load',
    start: `load(${scriptValue(`${assets}/static/array.js`)},{crossOrigin:"anonymous",onload(){w.posthog.init(${scriptValue(projectKey)},{api_host:${scriptValue(host)}})}});`,
    csp: { scriptSrc: [...new Set([assets, host])], connectSrc: [...new Set([host, assets])], imgSrc: [host] },
  }
}

function plausible(domain: string): Tracker {
  return {
    setsCookies: false,
    script: 'load',
    start: `load("https://plausible.io/js/script.js").dataset.domain=${scriptValue(domain)};`,
    csp: { scriptSrc: ['https://plausible.io'], connectSrc: ['https://plausible.io'] },
  }
}
