/** The organisation that owns the drops: switch, members, invitations. */
import { MAX_NAME_CHARS } from '../../../../shared/contracts/limits.ts'
import { may } from '../../../ground/actor.ts'
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { plans, sellsPlans } from '../../../ground/terms/plans.ts'
import type { Bill } from '../../../ground/mail/letters/templates.ts'
import type { Organisations } from '../../../people/organisations/organisations.ts'
import { csrfField, type Viewer } from '../frame/layout.ts'
import { endingSubscriptions } from './account-view.ts'
import { confirmCard } from '../parts/confirm-card.ts'
import { formAt, type PageForm } from '../parts/form-fields.ts'
import { dayInWords, spoken, timeAgo } from '../parts/words.ts'

const HOME = '/account/organisation'

export type Membership = Awaited<ReturnType<Organisations['list']>>[number]
export type Member = Awaited<ReturnType<Organisations['listMembers']>>[number]
type Invitation = Awaited<ReturnType<Organisations['listInvitations']>>[number]

export interface OrganisationPage {
  readonly current: Membership
  readonly all: readonly Membership[]
  /** Made a moment ago, and not acted for yet. */
  readonly created: Membership | undefined
  readonly members: readonly Member[]
  /** Empty for those who may not invite. */
  readonly invitations: readonly Invitation[]
  /** What is paid for and ends when the organisation is deleted. */
  readonly ending: readonly Bill[]
  /** Drops that more than named viewers can open, although that is no longer allowed. */
  readonly stillPublic: readonly { readonly id: string; readonly slug: string }[]
  readonly userId: string
  readonly now: number
}

export function organisationBody(viewer: Viewer, view: OrganisationPage): Html {
  const { current } = view
  return html`
    ${view.created && createdNotice(viewer, view.created, current)}
    ${view.all.length > 1 && switcher(viewer, view)}
    <section class="card" aria-labelledby="members">
      <div class="head">
        <h2 id="members">${current.name}</h2>
        <span class="tag accent">${plans[current.plan].label}</span>
      </div>
      <table class="table stacked">
        <caption class="visually-hidden">Members</caption>
        <thead>
          <tr>
            <th scope="col">Member</th>
            <th scope="col">Role</th>
            <th scope="col"><span class="visually-hidden">Actions</span></th>
          </tr>
        </thead>
        <tbody>${view.members.map((member) => memberRow(viewer, view, member))}</tbody>
      </table>
    </section>
    ${may(current.role, 'manage_members') && inviteCard(viewer, view)}
    ${may(current.role, 'rename') && renameCard(viewer, current.name)}
    ${may(current.role, 'rename') && policyCard(viewer, view)}
    ${!current.personal && may(current.role, 'manage_admins') && factorCard(viewer, current)}
    ${createCard(viewer)}
    ${!current.personal && may(current.role, 'delete') && deleteCard(viewer, view)}
  `
}

/** Making an organisation changes nothing else: whoever wants to go there says so. */
function createdNotice(viewer: Viewer, created: Membership, current: Membership): Html {
  const form = formAt(viewer, `${HOME}/switch`, { org: created.id })
  return html`
    <form class="notice good cluster spread" method="post" action="${form.action}">
      ${form.start}
      <p role="status"><strong>${created.name}</strong> is there. You still act for ${current.name}.</p>
      <button class="button small">Switch to ${created.name}</button>
    </form>
  `
}

function renameCard(viewer: Viewer, name: string): Html {
  const form = formAt(viewer, '/account/organisation/rename')
  return card(form, 'Rename', form.text({ name: 'name', id: 'rename', label: 'Name', value: name, ...NAME_FIELD }))
}

/** What is public already stays so until someone changes it: the list says what there is to look at. */
function policyCard(viewer: Viewer, { current, stillPublic }: OrganisationPage): Html {
  const form = formAt(viewer, '/account/organisation/policy')
  const choice = form.select({
    name: 'visibility_policy',
    label: 'Drops of this organisation',
    value: current.visibilityPolicy,
    options: [
      ['open', 'may be public'],
      ['private_by_default', 'are private unless their publisher says otherwise'],
      ['no_public', 'are never public: only named viewers see them'],
    ],
  })
  const fields = html`${choice}${
    stillPublic.length > 0 &&
    html`<p>Open to others since before, until you change them:</p>
      <ul>${stillPublic.map(({ id, slug }) => html`<li><a href="/sites/${id}/sharing">${slug}</a></li>`)}</ul>`
  }`
  return card(form, 'Who may see drops', fields, 'Save')
}

function factorCard(viewer: Viewer, current: Membership): Html {
  const form = formAt(viewer, '/account/organisation/second-factor')
  const field = form.check({
    name: 'required',
    label: 'Members need a second factor',
    hint: 'Those who have none cannot act for this organisation until they turn one on, nor see its drops as members; neither can their tokens and apps.',
    checked: current.requiresSecondFactor,
  })
  return card(form, 'Second factor', field, 'Save')
}

function createCard(viewer: Viewer): Html {
  const form = formAt(viewer, '/account/organisation/create')
  const hint = sellsPlans()
    ? 'With drops, members and a plan of its own. On the free plan it shares the room of your other free ones.'
    : 'With drops and members of its own.'
  const field = form.text({ name: 'name', id: 'create', label: 'Name', hint, ...NAME_FIELD })
  return card(form, 'New organisation', field, 'Create')
}

const NAME_FIELD = { required: true, maxlength: MAX_NAME_CHARS }

function card(form: PageForm, title: string, fields: Html, button = title): Html {
  const id = `${title.toLowerCase().replaceAll(' ', '-')}-title`
  return html`
    <form class="card" method="post" action="${form.action}" aria-labelledby="${id}">
      <h2 id="${id}">${title}</h2>
      ${form.start}
      ${fields}
      <div><button class="button primary">${button}</button></div>
    </form>
  `
}

function switcher(viewer: Viewer, { all, current }: OrganisationPage): Html {
  const form = formAt(viewer, '/account/organisation/switch')
  return html`
    <form class="card" method="post" action="${form.action}">
      ${form.start}
      ${form.select({
        name: 'org',
        label: 'Act for',
        value: current.id,
        options: all.map((entry) => [entry.id, `${entry.name} (${entry.role})`] as const),
      })}
      <div><button class="button">Switch</button></div>
      ${leaveLinks(all.filter(({ id, role }) => id !== current.id && role !== 'owner'))}
    </form>
  `
}

/** Organisations that one does not act for can be left too: one that asks for a second factor is closed without it. */
function leaveLinks(others: readonly Membership[]): Content {
  return (
    others.length > 0 &&
    html`
      <div class="cluster">
        ${others.map(
          ({ id, name }) =>
            html`<a class="button small danger" href="/account/organisation/leave?org=${id}">Leave ${name}…</a>`,
        )}
      </div>
    `
  )
}

function memberRow(viewer: Viewer, { current, userId, now }: OrganisationPage, member: Member): Html {
  const isSelf = member.userId === userId
  const otherRole = member.role === 'admin' ? 'member' : 'admin'
  const change = formAt(viewer, '/account/organisation/role', { user: member.userId, role: otherRole })
  const goes = isSelf ? `/leave?org=${current.id}` : `/remove?user=${member.userId}`
  const mayChange =
    !isSelf &&
    member.role !== 'owner' &&
    may(current.role, member.role === 'member' ? 'manage_members' : 'manage_admins')
  return html`
    <tr>
      <th scope="row">
        ${member.email}${isSelf && ' (you)'}<br>
        <span class="small soft">since ${timeAgo(member.joinedAt, now)}</span>
      </th>
      <td data-label="Role">${member.role}</td>
      <td class="right">
        <div class="cluster">
          ${
            mayChange &&
            may(current.role, 'manage_admins') &&
            html`
              <form method="post" action="${change.action}">
                ${change.start}
                <button class="button small">Make ${otherRole}${spoken(member.email)}</button>
              </form>
            `
          }
          ${
            !isSelf &&
            may(current.role, 'transfer') &&
            !current.personal &&
            html`
              <a class="button small"
                  href="/account/organisation/transfer?user=${member.userId}">Make owner…${spoken(member.email)}</a>
            `
          }
          ${
            (mayChange || (isSelf && member.role !== 'owner')) &&
            html`
              <a class="button small danger"
                  href="${HOME}${goes}">${isSelf ? 'Leave…' : 'Remove…'}${spoken(member.email)}</a>
            `
          }
        </div>
      </td>
    </tr>
  `
}

/** Asks before the organisation goes to another owner. */
export function transferBody(viewer: Viewer, { current, ending, member }: Asked & { ending: readonly Bill[] }): Html {
  return confirmCard(formAt(viewer, '/account/organisation/transfer', { user: member.userId }), {
    title: `Make ${member.email} the owner of ${current.name}?`,
    what: html`
      <p>
        They decide from then on about its members, its plan and its end. You stay as an admin, and cannot take it
        back by yourself. Drops and addresses stay as they are.
      </p>
      ${ending.map(({ plan }) => html`<p>The bill of the <strong>${plan}</strong> subscription goes to them.</p>`)}
    `,
    button: 'Transfer ownership',
    back: HOME,
    keep: 'Stay owner',
  })
}

/** Asks before a member is removed. */
export function removeMemberBody(viewer: Viewer, { current, member }: Asked): Html {
  return confirmCard(formAt(viewer, '/account/organisation/remove', { user: member.userId }), {
    title: `Remove ${member.email} from ${current.name}?`,
    what: html`<p>They lose ${WHAT_IS_LOST}</p>`,
    button: 'Remove',
    back: HOME,
    keep: 'Keep',
  })
}

/** Asks before the person leaves an organisation, whichever they act for. */
export function leaveBody(viewer: Viewer, { id, name }: Membership): Html {
  return confirmCard(formAt(viewer, '/account/organisation/leave', { org: id }), {
    title: `Leave ${name}?`,
    what: html`<p>You lose ${WHAT_IS_LOST}</p>`,
    button: 'Leave',
    back: HOME,
    keep: 'Stay',
  })
}

const WHAT_IS_LOST =
  'access to its drops at once; API tokens and connected apps for it stop working. What was published stays. ' +
  'To come back, a new invitation is needed.'

interface Asked {
  readonly current: Membership
  readonly member: Member
}

function inviteCard(viewer: Viewer, view: OrganisationPage): Html {
  const form = formAt(viewer, '/account/organisation/invite')
  return html`
    <section class="card" aria-labelledby="invite">
      <h2 id="invite">Invite someone</h2>
      <form class="form" method="post" action="${form.action}">
        ${form.start}
        <div class="row">
          ${form.text({ name: 'email', label: 'E-mail', type: 'email', required: true })}
          ${form.select({
            name: 'role',
            label: 'Role',
            value: 'member',
            options: [
              ['member', 'Member: publishes'],
              ['admin', 'Admin: also manages members'],
            ],
          })}
        </div>
        <div><button class="button primary">Send the invitation</button></div>
      </form>
      ${
        view.invitations.length > 0 &&
        html`
          <ul class="plain stack">
            ${view.invitations.map(
              (invitation) => html`
                <li class="cluster spread">
                  <span class="whole">${invitation.email}<br>
                    <span class="small soft">invited as ${invitation.role}; the link works until
                    ${dayInWords(invitation.expiresAt)}</span></span>
                  <form method="post" action="/account/organisation/uninvite">
                    ${csrfField(viewer)}
                    <input type="hidden" name="id" value="${invitation.id}">
                    <button class="button small">Withdraw${spoken(invitation.email)}</button>
                  </form>
                </li>
              `,
            )}
          </ul>
        `
      }
    </section>
  `
}

function deleteCard(viewer: Viewer, { current, ending }: OrganisationPage): Html {
  const form = formAt(viewer, '/account/organisation/delete')
  return html`
    <form class="card danger" method="post" action="${form.action}" aria-labelledby="delete-org">
      <h2 id="delete-org">Delete ${current.name}</h2>
      ${form.start}
      <p>All of its drops are gone at once and for good.</p>
      ${endingSubscriptions(ending)}
      ${form.text({ name: 'confirm', label: `Type “${current.name}” to confirm`, required: true, autocomplete: 'off' })}
      <div><button class="button danger">Delete the organisation</button></div>
    </form>
  `
}
