/**
 * What the REST API must answer: a small model of people, organisations, drops, versions, slugs, caps and states.
 * `predict` says status, error code and visible fields of a call before it is made, and what the world is afterwards.
 *
 * What the specification leaves open is decided here, in words:
 *   - Credentials come first (401), then the verified address (403), then the body (400), then whose it is (404), then
 *     what the drop's state allows (403, 409), then the content (400, 413), then preconditions (412) and caps (403).
 *   - Every member of an organisation may publish to its drops, change and delete them; roles matter for people only.
 *   - A slug that a rename gave up stays its drop's for the cool-down, also where nothing was ever published. The slug of
 *     a deleted drop is free at once where nothing was.
 *   - A caller who asks about an organisation that they do not belong to learns that there is none (404).
 */
import type { PlanName } from '../../../control/ground/terms/plans.ts'
import { actingAs, type Acting, type Caller } from './access.ts'
import { Refusal, refuse, type Expected } from './answers.ts'
import type { Call } from './calls.ts'
import * as drops from './drops.ts'
import * as members from './members.ts'
import * as organisations from './organisations.ts'
import * as preparedUploads from './prepared-uploads.ts'
import * as publishing from './publishing.ts'
import type { Org, Site, World } from './world.ts'

export function predict(world: World, caller: Caller, call: Call): Expected {
  world.time += 1
  try {
    return expected(world, caller, call)
  } catch (error) {
    if (error instanceof Refusal) return error.expected
    throw error
  }
}

/** What an operator does, beside the API. */
export function takeDown(world: World, site: Site, isDown: boolean): void {
  world.time += 1
  site.takenDown = isDown
}

/** A paid plan that ends pauses what is beyond the free cap; a paid one that begins resumes what fits. */
export function changePlan(world: World, org: Org, plan: PlanName): void {
  world.time += 1
  const before = org.plan
  org.plan = plan
  if (isPaid(before) && !isPaid(plan)) drops.pauseBeyondCap(world, org)
  else if (isPaid(plan)) drops.resumeFitting(world, org)
}

function isPaid(plan: PlanName): boolean {
  return plan !== 'free'
}

function expected(world: World, caller: Caller, call: Call): Expected {
  const account = (): Acting => actingAs(world, caller, 'account')
  const verified = (): Acting => actingAs(world, caller, 'verified')
  switch (call.do) {
    case 'create site':
      return drops.createSite(world, account(), call)
    case 'list sites':
      return drops.listSites(world, account())
    case 'read site':
      return drops.readSite(world, account(), call)
    case 'change site':
      return drops.changeSite(world, verified(), call)
    case 'change site wrongly':
      verified()
      throw refuse.invalid()
    case 'delete site':
      return drops.deleteSite(world, account(), call)
    case 'choose':
      return drops.chooseStayingLive(world, verified(), call)
    case 'list drops of browser':
      return drops.listDropsOfBrowser(world, call)
    case 'upload':
      return publishing.upload(world, account(), call)
    case 'bundle':
      return publishing.uploadBundle(world, account(), call)
    case 'publish anonymously':
      return publishing.publishAnonymously(world, call)
    case 'publish markdown':
      return publishing.publishMarkdown(world, call)
    case 'list versions':
      return publishing.listVersions(world, verified(), call)
    case 'promote':
      return publishing.promote(world, verified(), call)
    case 'compare':
      return publishing.compareVersions(world, verified(), call)
    case 'start upload':
      return preparedUploads.startUpload(world, verified(), call)
    case 'send blob':
      return preparedUploads.sendBlob(world, verified(), call)
    case 'finish upload':
      return preparedUploads.finishUpload(world, verified(), call)
    case 'read upload':
      return preparedUploads.readUpload(world, verified(), call)
    case 'read me':
      return organisations.readMe(world, verified())
    case 'read usage':
      return organisations.readUsage(world, verified())
    case 'list organisations':
      return organisations.listOrganisations(world, verified())
    case 'create organisation':
      return organisations.createOrganisation(world, verified(), call)
    case 'rename organisation':
      return organisations.renameOrganisation(world, verified(), call)
    case 'delete organisation':
      return organisations.deleteOrganisation(world, verified(), call)
    case 'switch':
      return organisations.switchOrganisation(world, verified(), call)
    case 'transfer':
      return organisations.transfer(world, verified(), call)
    case 'list members':
      return members.listMembers(world, verified(), call)
    case 'change role':
      return members.changeRole(world, verified(), call)
    case 'remove member':
      return members.removeMember(world, verified(), call)
    case 'list invitations':
      return members.listInvitations(world, verified(), call)
    case 'invite':
      return members.invite(world, verified(), call)
    case 'withdraw invitation':
      return members.withdrawInvitation(world, verified(), call)
    case 'accept invitation':
      return members.acceptInvitation(world, verified(), call)
    case 'list tokens':
      return members.listTokens(world, verified())
    case 'create token':
      return members.createToken(world, verified(), call)
    case 'revoke token':
      return members.revokeToken(world, verified(), call)
    default:
      return call satisfies never
  }
}
