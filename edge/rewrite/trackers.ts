/**
 * The four kinds of analytics. Each is a few lines that define the provider's queue and load its script with
 * `load(url, attributes)`; scripts made by a script also run under a page's 'strict-dynamic' policy.
 */
import type { Analytics } from '../../shared/contracts/analytics.ts'
import type { CspNeeds } from './csp.ts'
import { scriptValue } from './script-text.ts'

export interface Tracker {
  readonly setsCookies: boolean
  /** JavaScript statements. */
  readonly start: string
  readonly csp: Partial<CspNeeds>
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
    start: `if(!w.fbq){var q=w.fbq=function(){q.callMethod?q.callMethod.apply(q,arguments):q.queue.push(arguments)};q.push=q;q.loaded=true;q.version="2.0";q.queue=[];w._fbq=w._fbq||q;load("https://connect.facebook.net/en_US/fbevents.js")}w.fbq("init",${scriptValue(pixelId)});w.fbq("track","PageView");`,
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
    start: `load(${scriptValue(`${assets}/static/array.js`)},{crossorigin:"anonymous"},function(){w.posthog.init(${scriptValue(projectKey)},{api_host:${scriptValue(host)}})});`,
    csp: { scriptSrc: [...new Set([assets, host])], connectSrc: [...new Set([host, assets])], imgSrc: [host] },
  }
}

function plausible(domain: string): Tracker {
  return {
    setsCookies: false,
    start: `load("https://plausible.io/js/script.js",{"data-domain":${scriptValue(domain)}});`,
    csp: { scriptSrc: ['https://plausible.io'], connectSrc: ['https://plausible.io'] },
  }
}
