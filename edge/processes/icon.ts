/** The icon of a drop that brings none: a sheet of paper, nobody's mark. Browsers ask for it with every first visit. */
import { STRICT_TRANSPORT_SECURITY } from '../../shared/http/header-policy.ts'
import type { HeaderList } from '../context.ts'

/** What browsers ask for where a page names no icon. */
export const ICON_PATH = '/favicon.ico'

/** A PNG of 32 × 32, which browsers take under any name. */
export const ICON_PNG: Buffer = Buffer.from(
  [
    'iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAYAAABzenr0AAABvElEQVR4nOyXPUhCURSAz3lqkmWCRgZGoVDkHEGjBLY01FYU',
    'RlAOQlCBb2gPAhWxqaWmlsaoIcIpwhrEIIIyh2ioSOlnKQLJd7tPkEyveK0nNrwP5Op55577KedcUIAGo2UFZ8VAp0bCAAIZ',
    'AUQrcEKAXGUBXdshMcO7R2AFtRJEEMFTy+EyCOjUEzjy+IMd/HsYzPkDT7SYRfRNQp+jC3jwiqHvDwSS8Klzba4vpavtE9hW',
    'aJFX3sOLaTeb5AL9RJs9mV+MVP0FBVCYlYXpvAQiOngkFBdoMxrKJGaWwzaot0CroTm/pm7uyiR0Qi5WSUILCuHs7Yb4+TUE',
    'N3bKntGJ6mnS5I7pW0fdBCbGhgEFAS5Tt/D2/sFKsbOCigmYjC3gnRplPvsxoiUo3oS1ogo0XIC7CXejcbhPv3Dl2qxmGHcP',
    'cuUqNgXF0MuHO5dbgPcb1YrahGoTqk2oCvxPAUIgP28P6Wf4K4UahZpcAnSIkvK6dxiDxwzf7Fc6XK5RXLMU5hgiIWsEcT9x',
    'kQL5pQQS4CorrmEFz06jqYEhd4JK2OnfLBO9V/TwK8groeVQAt9WWDxgZfBfWXXiCwAA//+yChpGAAAABklEQVQDADfbgbMq',
    'sjqbAAAAAElFTkSuQmCC',
  ].join(''),
  'base64',
)

/** Kept for a day: a drop may bring an icon tomorrow. */
export const ICON_HEADERS: HeaderList = [
  'content-type',
  'image/png',
  'content-length',
  String(ICON_PNG.length),
  'cache-control',
  'public, max-age=86400',
  'x-content-type-options',
  'nosniff',
  'strict-transport-security',
  STRICT_TRANSPORT_SECURITY,
]
