/** The organisation that owns the drops: switch, members, invitations. */
import { MAX_NAME_CHARS } from '../../../../shared/limits.ts'
import { may } from '../../../ground/actor.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import { plans } from '../../../../shared/plans.ts'
import type { Bill } from '../../../ground/mail/templates.ts'
import type { Organisations } from '../../../people/organisations/organisations.ts'
import { csrfField, type Viewer } from '../frame/layout.ts'
import { endingSubscriptions } from './account-view.ts'
import { selectField, textField } from '../parts/form-fields.ts'
import { spoken, timeAgo } from '../parts/words.ts'

type Membership = Awaited<ReturnType<Organisations['list']>>[number]
type Member = Awaited<ReturnType<Organisations['listMembers']>>[number]
type Invitation = Awaited<ReturnType<Organisations['listInvitations']>>[number]

export interface OrganisationPage {
  readonly current: Membership
  readonly all: readonly Membership[]
  readonly members: readonly Member[]
  /** Empty for those who may not invite. */
  readonly invitations: readonly Invitation[]
  /** What is paid for and ends when the organisation is deleted. */
  readonly ending: readonly Bill[]
  readonly userId: string
  readonly now: number
}

export function organisationBody(viewer: Viewer, view: OrganisationPage): Html {
  const { current } = view
  return html`
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
    ${
      may(current.role, 'rename') &&
      form(
        viewer,
        'rename',
        'Rename',
        html`${textField({
          name: 'name',
          id: 'rename',
          label: 'Name',
          value: current.name,
          required: true,
          maxlength: MAX_NAME_CHARS,
        })}`,
      )
    }
    ${form(
      viewer,
      'create',
      'New organisation',
      html`${textField({
        name: 'name',
        id: 'create',
        label: 'Name',
        required: true,
        maxlength: MAX_NAME_CHARS,
        hint: 'With drops, members and a plan of its own.',
      })}`,
      'Create',
    )}
    ${!current.personal && may(current.role, 'delete') && deleteCard(viewer, view)}
  `
}

function form(viewer: Viewer, action: string, title: string, fields: Html, button = title): Html {
  return html`
    <form class="card" method="post" action="/account/organisation/${action}"
        aria-labelledby="${action}-title">
      ${csrfField(viewer)}
      <h2 id="${action}-title">${title}</h2>
      ${fields}
      <div><button class="button primary">${button}</button></div>
    </form>
  `
}

function switcher(viewer: Viewer, { all, current }: OrganisationPage): Html {
  return html`
    <form class="card" method="post" action="/account/organisation/switch">
      ${csrfField(viewer)}
      ${selectField({
        name: 'org',
        label: 'Act for',
        value: current.id,
        options: all.map((entry) => [entry.id, `${entry.name} (${entry.role})`] as const),
      })}
      <div><button class="button">Switch</button></div>
    </form>
  `
}

function memberRow(viewer: Viewer, { current, userId, now }: OrganisationPage, member: Member): Html {
  const isSelf = member.userId === userId
  const mayChange =
    !isSelf &&
    member.role !== 'owner' &&
    may(current.role, member.role === 'member' ? 'manage_members' : 'manage_admins')
  const hidden = html`${csrfField(viewer)}<input type="hidden" name="user" value="${member.userId}">`
  return html`
    <tr>
      <td>
        ${member.email}${isSelf && ' (you)'}<br>
        <span class="small soft">since ${timeAgo(member.joinedAt, now)}</span>
      </td>
      <td data-label="Role">${member.role}</td>
      <td class="right">
        <div class="cluster">
          ${
            mayChange &&
            may(current.role, 'manage_admins') &&
            html`
              <form method="post" action="/account/organisation/role">
                ${hidden}
                <input type="hidden" name="role" value="${member.role === 'admin' ? 'member' : 'admin'}">
                <button class="button small">Make
                ${member.role === 'admin' ? 'member' : 'admin'}${spoken(member.email)}</button>
              </form>
            `
          }
          ${
            !isSelf &&
            may(current.role, 'transfer') &&
            !current.personal &&
            html`
              <form method="post" action="/account/organisation/transfer">
                ${hidden}
                <button class="button small">Make owner${spoken(member.email)}</button>
              </form>
            `
          }
          ${
            (mayChange || (isSelf && member.role !== 'owner')) &&
            html`
              <form method="post" action="/account/organisation/remove">
                ${hidden}
                <button class="button small danger">${isSelf ? 'Leave' : 'Remove'}${spoken(member.email)}</button>
              </form>
            `
          }
        </div>
      </td>
    </tr>
  `
}

function inviteCard(viewer: Viewer, view: OrganisationPage): Html {
  return html`
    <section class="card" aria-labelledby="invite">
      <h2 id="invite">Invite someone</h2>
      <form class="form" method="post" action="/account/organisation/invite">
        ${csrfField(viewer)}
        <div class="row">
          ${textField({ name: 'email', label: 'E-mail', type: 'email', required: true })}
          ${selectField({
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
                  <span>${invitation.email}, ${invitation.role} <span class="small soft">until
                  ${timeAgo(invitation.expiresAt, view.now)}</span></span>
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
  return html`
    <form class="card danger" method="post" action="/account/organisation/delete"
        aria-labelledby="delete-org">
      ${csrfField(viewer)}
      <h2 id="delete-org">Delete ${current.name}</h2>
      <p>All of its drops are gone at once and for good.</p>
      ${endingSubscriptions(ending)}
      ${textField({ name: 'confirm', label: `Type “${current.name}” to confirm`, required: true, autocomplete: 'off' })}
      <div><button class="button danger">Delete the organisation</button></div>
    </form>
  `
}
