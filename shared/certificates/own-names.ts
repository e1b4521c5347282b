/**
 * The names of the service itself for which edges get certificates by themselves, where dns-01 is set up: the wildcard
 * of the sites domain, which stands for the domain too, and the dashboard's host where the wildcard does not cover it.
 */
import { isIP } from 'node:net'
import type { SharedSettings } from '../settings/settings.ts'
import { namesCover } from './bundle.ts'

/** Orders for the service's own names are counted apart from those of any customer. */
export const OWN_ORGANISATION = 'service'

type OwnNames = Pick<SharedSettings, 'serviceHost' | 'sitesDomain'>

export function wildcardOfSites({ sitesDomain }: Pick<OwnNames, 'sitesDomain'>): string {
  return `*.${sitesDomain}`
}

/** What a certificate that is kept under this name says: a wildcard covers no name but those directly below it. */
export function certifiedNames(name: string): string[] {
  return name.startsWith('*.') ? [name, name.slice(2)] : [name]
}

/** Each is a certificate of its own, so that one that fails does not keep the other from being renewed. */
export function ownCertificates({ serviceHost, sitesDomain }: OwnNames): string[] {
  const wildcard = wildcardOfSites({ sitesDomain })
  const host = serviceHost.replace(/^\[|\]$/g, '')
  const isCovered = isIP(host) !== 0 || namesCover(certifiedNames(wildcard), host)
  return isCovered ? [wildcard] : [wildcard, host]
}
