import { load } from './load.ts'
import type { MetaPixel } from './page-window.ts'

/** Meta's own queue `q`, which takes the arguments of each call as they are, not as an array. */
export function meta(id: string): void {
  if (!w.fbq) {
    const q: MetaPixel = (w.fbq = function () {
      if (q.callMethod) q.callMethod(...arguments)
      else q.queue.push(arguments)
    } as MetaPixel)
    q.push = q
    q.loaded = true
    q.version = '2.0'
    q.queue = []
    w._fbq ??= q
    load('https://connect.facebook.net/en_US/fbevents.js')
  }
  w.fbq('init', id)
  w.fbq('track', 'PageView')
}
