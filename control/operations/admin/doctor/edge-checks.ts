/** What `doctor` asks on a machine that runs an edge. */
import { namesCover } from '../../../../shared/certificates/bundle.ts'
import { isLoopbackName } from '../../../../shared/http/ip.ts'
import { shownCertificate, type ShownCertificate } from '../../../ground/certificate-end.ts'
import {
  ANSWER_TIMEOUT_MS,
  CONNECT_TIMEOUT_MS,
  ok,
  problem,
  START_IT,
  warning,
  type Check,
  type CommonConfig,
  type Finding,
} from './finding.ts'
import { connects } from './reachable.ts'

/** The part of an edge's settings that is looked at, beside what all machines have. */
export interface EdgeSettings extends CommonConfig {
  readonly controlUrls: readonly string[]
  readonly acmeDirectoryUrl: string | undefined
}

const listeners: Check = async ({ httpsPort, httpPort, serviceHost, sitesDomain }) => [
  ...(await tlsFindings(httpsPort, { serviceHost, sitesDomain })),
  (await connects(httpPort, '127.0.0.1'))
    ? ok('edge http', `listens on port ${httpPort}`)
    : problem(
        'edge http',
        `nothing listens on port ${httpPort} (EDGE_HTTP_PORT)`,
        `${START_IT} Its log is DATA_DIR/logs/edge.log.`,
      ),
]

type Names = Pick<CommonConfig, 'serviceHost' | 'sitesDomain'>

/** Handshakes for the service's own name and for a drop: which certificate is there, until when, and for whom? */
async function tlsFindings(port: number, names: Names): Promise<Finding[]> {
  const shown = (servername: string): Promise<ShownCertificate> =>
    shownCertificate({ port, host: '127.0.0.1', servername, timeoutMs: CONNECT_TIMEOUT_MS })
  try {
    const [own, drop] = [await shown(names.serviceHost), await shown(`doctor.${names.sitesDomain}`)]
    return certificateFindings({ port, names, own, drop, nowMs: Date.now() })
  } catch {
    return [
      problem(
        'edge https',
        `nothing answers TLS on port ${port} (EDGE_HTTPS_PORT)`,
        `${START_IT} Its log is DATA_DIR/logs/edge.log.`,
      ),
    ]
  }
}

export interface ShownCertificates {
  readonly port: number
  readonly names: Names
  /** For the service's host, and for an address below the sites domain. */
  readonly own: ShownCertificate
  readonly drop: ShownCertificate
  readonly nowMs: number
}

const GET_ONE = 'Set DNS01 (the wildcard comes by itself), or bring it in SITES_CERT_FILE and SITES_KEY_FILE.'

/** The worst of it, once: a certificate that has ended is not also called a stranger's. */
export function certificateFindings({ port, names, own, drop, nowMs }: ShownCertificates): Finding[] {
  const { serviceHost, sitesDomain } = names
  const check = 'edge https'
  for (const [name, { end }] of [
    [serviceHost, own],
    [`*.${sitesDomain}`, drop],
  ] as const)
    if (end.getTime() < nowMs)
      return [
        problem(
          check,
          `the certificate of ${name} ended on ${end.toUTCString()}`,
          `Renew it, or check the clock. ${GET_ONE}`,
        ),
      ]
  if (!namesCover(own.names, serviceHost))
    return [
      problem(check, `the certificate does not stand for ${serviceHost}, only for ${own.names.join(', ')}`, GET_ONE),
    ]
  if (!namesCover(drop.names, `doctor.${sitesDomain}`))
    return [
      problem(check, `the certificate does not stand for *.${sitesDomain}, only for ${drop.names.join(', ')}`, GET_ONE),
    ]
  const detail = `listens on port ${port}, certificate until ${own.end.toUTCString()}`
  if (isLoopbackName(serviceHost) || !LOCAL_AUTHORITY.test(own.issuer)) return [ok(check, detail)]
  return [warning(check, `${detail}, signed by the local authority, which no visitor's browser knows`, GET_ONE)]
}

/** What certs/local writes as the name of its root. */
const LOCAL_AUTHORITY = /^Dropway local CA\b/

/** An edge without a control serves what it knows; callers of the service itself hear 502. */
const controls: Check<EdgeSettings> = async ({ controlUrls }) =>
  Promise.all(
    controlUrls.map(async (url) => {
      try {
        const answer = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) })
        await answer.body?.cancel()
        return answer.ok
          ? ok('control', `${url} answers`)
          : problem('control', `${url} answers ${answer.status}`, 'Look at the log of that control.')
      } catch {
        return problem(
          'control',
          `${url} does not answer`,
          'Check CONTROL_URLS, CONTROL_HOST of the control, and the firewall.',
        )
      }
    }),
  )

const authority: Check<EdgeSettings> = async ({ acmeDirectoryUrl }) => {
  if (acmeDirectoryUrl === undefined) return []
  const { hostname, port } = new URL(acmeDirectoryUrl)
  const target = Number(port) || 443
  return [
    (await connects(target, hostname))
      ? ok('certificate authority', `${hostname}:${target} can be reached`)
      : problem(
          'certificate authority',
          `${hostname}:${target} cannot be reached`,
          'Check ACME_DIRECTORY_URL and the firewall.',
        ),
  ]
}

/** For a machine that runs an edge beside a control. */
export const listenerChecks: readonly Check[] = [listeners]

/** For one that runs an edge alone. */
export const edgeChecks: readonly Check<EdgeSettings>[] = [listeners, controls, authority]
