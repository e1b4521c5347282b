/** Which paths of the service's own host programs call. Edge and control answer those in JSON, and people with a page. */

/** All of OAuth but the page that asks for consent. */
const OAUTH_ENDPOINT = /^\/oauth\/(?:token|register|revoke|device_authorization)$/

export function isProgramPath(path: string): boolean {
  return /^\/(?:api|mcp|\.well-known)(?:\/|$)/.test(path) || OAUTH_ENDPOINT.test(path)
}
